// ==== IndexBackward0 =======================================================================================
// IndexBackward0(Tensor?[] grads, bool[1] needs_input_grad, Tensor?[] indices, ScalarType? self_options_dtype, Layout? self_options_layout, Device? self_options_device, bool? self_options_pin_memory, SymInt[] self_sym_sizes) -> Tensor[]
//
// index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
//   self: index_backward(grad.new_zeros_symint(self.sym_sizes(), self.options()), indices, grad)
//
// delegate: 'index_backward' in the formula of 'self' is not exported by torch
#line 1 "IndexBackward0 (generated)"
variable_list IndexBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const c10::List<std::optional<at::Tensor>>& indices,
    const at::TensorOptions& self_options,
    const std::vector<c10::SymInt>& self_sym_sizes) {
  DelegateEdges edges(1);
  edges.add(needs_input_grad[0]);
  const DelegateOwner owner(make_delegate<structs::IndexBackward0>(std::move(edges)));
  auto* node = static_cast<structs::IndexBackward0*>(&owner.node());
  {
    FieldFiller fill;
    fill.optional_tensor_list(node->indices_, indices);
  }
  node->self_options = self_options;
  node->self_sym_sizes = self_sym_sizes;
  return node->apply(std::move(grads));
}

variable_list IndexBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  ArgumentReader reader("IndexBackward0", arguments, 7);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto indices = reader.optional_tensor_list();
  const auto self_options = reader.tensor_options();
  const auto self_sym_sizes = reader.sym_int_list();
  const Preconditions check("IndexBackward0");
  check.gradient_count(grads, 1);
  return IndexBackward0_apply_functional(variable_list(grads), needs_input_grad, indices, self_options, self_sym_sizes);
}

void IndexBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::IndexBackward0&>(base);
  writer.needs_input_grad({1});
  writer.optional_tensor_list(node.indices_, node.indices_released_);
  writer.tensor_options(node.self_options);
  writer.sym_int_list(node.self_sym_sizes);
}

constexpr std::array<Argument, 6> IndexBackward0_arguments{{    {"indices", ValueKind::OptionalTensorList},    {"self_options_dtype", ValueKind::OptionalScalarType},    {"self_options_layout", ValueKind::OptionalLayout},    {"self_options_device", ValueKind::OptionalDevice},    {"self_options_pin_memory", ValueKind::OptionalBool},    {"self_sym_sizes", ValueKind::SymIntList}}};

const Binding IndexBackward0_binding{
    "IndexBackward0",
    "IndexBackward0(Tensor?[] grads, bool[1] needs_input_grad, Tensor?[] indices, ScalarType? self_options_dtype, Layout? self_options_layout, Device? self_options_device, bool? self_options_pin_memory, SymInt[] self_sym_sizes) -> Tensor[]",
    &typeid(structs::IndexBackward0),
    1,
    1,
    false,
    IndexBackward0_arguments,
    &IndexBackward0_apply_functional_ivalue,
    &IndexBackward0_apply_functional_ivalue,
    &IndexBackward0_pack,
    nullptr,
    {}};
