// ==== BlockDiagBackward0 ===================================================================================
// BlockDiagBackward0(Tensor?[] grads, bool[1] needs_input_grad, ScalarType[] tensors_args_scalartypes, int[] tensors_args_sizes_values, int[] tensors_args_sizes_lengths, int tensors_size) -> Tensor[]
//
// block_diag(Tensor[] tensors) -> Tensor
//   tensors: block_diag_backward(grad, to_args_sizes(tensors), to_args_scalartypes(tensors))
//
// delegate: 'block_diag_backward' in the formula of 'tensors' is not exported by torch
#line 1 "BlockDiagBackward0 (generated)"
variable_list BlockDiagBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const std::vector<at::ScalarType>& tensors_args_scalartypes,
    const std::vector<std::vector<int64_t>>& tensors_args_sizes,
    size_t tensors_size) {
  DelegateEdges edges(tensors_size);
  edges.add_list(needs_input_grad[0], tensors_size);
  const DelegateOwner owner(make_delegate<structs::BlockDiagBackward0>(std::move(edges)));
  auto* node = static_cast<structs::BlockDiagBackward0*>(&owner.node());
  node->tensors_args_scalartypes = tensors_args_scalartypes;
  node->tensors_args_sizes = tensors_args_sizes;
  node->tensors_size_ = tensors_size;
  return node->apply(std::move(grads));
}

variable_list BlockDiagBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  ArgumentReader reader("BlockDiagBackward0", arguments, 5);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto tensors_args_scalartypes = reader.read<std::vector<at::ScalarType>>();
  const auto tensors_args_sizes = reader.read<std::vector<std::vector<int64_t>>>();
  const auto tensors_size = reader.read<size_t>();
  const Preconditions check("BlockDiagBackward0");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0]) check.list_length("tensors_args_scalartypes", tensors_args_scalartypes.size(), tensors_size);
  if (needs_input_grad[0]) check.list_length("tensors_args_sizes_lengths", tensors_args_sizes.size(), tensors_size);
  return BlockDiagBackward0_apply_functional(variable_list(grads), needs_input_grad, tensors_args_scalartypes, tensors_args_sizes, tensors_size);
}

void BlockDiagBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::BlockDiagBackward0&>(base);
  writer.needs_input_grad({node.tensors_size_});
  writer.write(node.tensors_args_scalartypes);
  writer.write(node.tensors_args_sizes);
  writer.write(node.tensors_size_);
}

constexpr std::array<Argument, 4> BlockDiagBackward0_arguments{{    {"tensors_args_scalartypes", {ElementKind::kScalarType, Form::kList}},    {"tensors_args_sizes_values", {ElementKind::kInt, Form::kList}},    {"tensors_args_sizes_lengths", {ElementKind::kInt, Form::kList}},    {"tensors_size", {ElementKind::kInt, Form::kOne}}}};

const Binding BlockDiagBackward0_binding{
    "BlockDiagBackward0",
    "BlockDiagBackward0(Tensor?[] grads, bool[1] needs_input_grad, ScalarType[] tensors_args_scalartypes, int[] tensors_args_sizes_values, int[] tensors_args_sizes_lengths, int tensors_size) -> Tensor[]",
    &typeid(structs::BlockDiagBackward0),
    1,
    1,
    false,
    BlockDiagBackward0_arguments,
    &BlockDiagBackward0_apply_functional_ivalue,
    &BlockDiagBackward0_apply_functional_ivalue,
    &BlockDiagBackward0_pack,
    nullptr,
    nullptr,
    {}};
