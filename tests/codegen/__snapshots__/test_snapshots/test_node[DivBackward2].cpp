// ==== DivBackward2 =========================================================================================
// DivBackward2(Tensor?[] grads, bool[2] needs_input_grad, Tensor? other, str? rounding_mode, Tensor? self, ScalarType self_scalar_type) -> Tensor[]
//
// div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor
//   self: div_tensor_self_backward(grad, other, self.scalar_type(), rounding_mode)
//   other: div_tensor_other_backward(grad, self, other, rounding_mode)
//
// delegate: 'div_tensor_self_backward' in the formula of 'self' is not exported by torch
#line 1 "DivBackward2 (generated)"
variable_list DivBackward2_apply_functional(variable_list&& grads, std::array<bool, 2> needs_input_grad,
    const at::Tensor& other,
    const std::optional<std::string>& rounding_mode,
    const at::Tensor& self,
    at::ScalarType self_scalar_type) {
  DelegateEdges edges(2);
  edges.add(needs_input_grad[0]);
  edges.add(needs_input_grad[1]);
  const DelegateOwner owner(make_delegate<structs::DivBackward2>(std::move(edges)));
  auto* node = static_cast<structs::DivBackward2*>(&owner.node());
  {
    FieldFiller fill;
    fill.tensor(node->other_, other);
    fill.tensor(node->self_, self);
  }
  node->rounding_mode = rounding_mode;
  node->self_scalar_type = self_scalar_type;
  return node->apply(std::move(grads));
}

variable_list DivBackward2_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  ArgumentReader reader("DivBackward2", arguments, 5);
  const auto needs_input_grad = reader.needs_input_grad<2>();
  const auto other = reader.tensor();
  const auto rounding_mode = reader.optional_string();
  const auto self = reader.tensor();
  const auto self_scalar_type = reader.scalar_type();
  const Preconditions check("DivBackward2");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0] || needs_input_grad[1]) check.defined(grads, {"other", other});
  if (needs_input_grad[1]) check.defined(grads, {"self", self});
  return DivBackward2_apply_functional(variable_list(grads), needs_input_grad, other, rounding_mode, self, self_scalar_type);
}

void DivBackward2_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::DivBackward2&>(base);
  writer.needs_input_grad({1, 1});
  writer.tensor(node.other_);
  writer.optional_string(node.rounding_mode);
  writer.tensor(node.self_);
  writer.scalar_type(node.self_scalar_type);
}

constexpr std::array<Argument, 4> DivBackward2_arguments{{    {"other", ValueKind::OptionalTensor},    {"rounding_mode", ValueKind::OptionalString},    {"self", ValueKind::OptionalTensor},    {"self_scalar_type", ValueKind::ScalarType}}};

const Binding DivBackward2_binding{
    "DivBackward2",
    "DivBackward2(Tensor?[] grads, bool[2] needs_input_grad, Tensor? other, str? rounding_mode, Tensor? self, ScalarType self_scalar_type) -> Tensor[]",
    &typeid(structs::DivBackward2),
    2,
    1,
    false,
    false,
    DivBackward2_arguments,
    &DivBackward2_apply_functional_ivalue,
    &DivBackward2_apply_functional_ivalue,
    &DivBackward2_pack,
    nullptr};
