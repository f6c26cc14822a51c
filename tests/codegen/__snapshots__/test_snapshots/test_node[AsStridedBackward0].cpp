// ==== AsStridedBackward0 ===================================================================================
// AsStridedBackward0(Tensor?[] grads, bool[1] needs_input_grad, SymInt[] self_geometry_sizes, SymInt[] self_geometry_strides, SymInt self_geometry_storage_offset, SymInt[] size, SymInt? storage_offset, SymInt[] stride) -> Tensor[]
//
// as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)
//   self: as_strided_backward(grad, TensorGeometry(self), size, stride, storage_offset)
//
// delegate: 'as_strided_backward' in the formula of 'self' is not exported by torch
#line 1 "AsStridedBackward0 (generated)"
variable_list AsStridedBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const at::TensorGeometry& self_geometry,
    const std::vector<c10::SymInt>& size,
    const std::optional<c10::SymInt>& storage_offset,
    const std::vector<c10::SymInt>& stride) {
  DelegateEdges edges(1);
  edges.add(needs_input_grad[0]);
  const DelegateOwner owner(make_delegate<structs::AsStridedBackward0>(std::move(edges)));
  auto* node = static_cast<structs::AsStridedBackward0*>(&owner.node());
  node->self_geometry = self_geometry;
  node->size = size;
  node->storage_offset = storage_offset;
  node->stride = stride;
  return node->apply(std::move(grads));
}

variable_list AsStridedBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  ArgumentReader reader("AsStridedBackward0", arguments, 7);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto self_geometry = reader.read<at::TensorGeometry>();
  const auto size = reader.read<std::vector<c10::SymInt>>();
  const auto storage_offset = reader.read<std::optional<c10::SymInt>>();
  const auto stride = reader.read<std::vector<c10::SymInt>>();
  const Preconditions check("AsStridedBackward0");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0]) check.same_length("size", size.size(), "stride", stride.size());
  if (needs_input_grad[0]) check.gradient_sizes(grads, 0, "size", size);
  return AsStridedBackward0_apply_functional(variable_list(grads), needs_input_grad, self_geometry, size, storage_offset, stride);
}

void AsStridedBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::AsStridedBackward0&>(base);
  writer.needs_input_grad({1});
  writer.write(node.self_geometry);
  writer.write(node.size);
  writer.write(node.storage_offset);
  writer.write(node.stride);
}

constexpr std::array<Argument, 6> AsStridedBackward0_arguments{{    {"self_geometry_sizes", {ElementKind::kSymInt, Form::kList}},    {"self_geometry_strides", {ElementKind::kSymInt, Form::kList}},    {"self_geometry_storage_offset", {ElementKind::kSymInt, Form::kOne}},    {"size", {ElementKind::kSymInt, Form::kList}},    {"storage_offset", {ElementKind::kSymInt, Form::kOptional}},    {"stride", {ElementKind::kSymInt, Form::kList}}}};

const Binding AsStridedBackward0_binding{
    "AsStridedBackward0",
    "AsStridedBackward0(Tensor?[] grads, bool[1] needs_input_grad, SymInt[] self_geometry_sizes, SymInt[] self_geometry_strides, SymInt self_geometry_storage_offset, SymInt[] size, SymInt? storage_offset, SymInt[] stride) -> Tensor[]",
    &typeid(structs::AsStridedBackward0),
    1,
    1,
    false,
    AsStridedBackward0_arguments,
    &AsStridedBackward0_apply_functional_ivalue,
    &AsStridedBackward0_apply_functional_ivalue,
    &AsStridedBackward0_pack,
    nullptr,
    nullptr,
    {}};
