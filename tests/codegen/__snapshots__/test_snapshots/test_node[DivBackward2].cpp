// ==== DivBackward2 =========================================================================================
// DivBackward2(Tensor?[] grads, bool[2] needs_input_grad, Tensor? other, str? rounding_mode, Tensor? self, ScalarType self_scalar_type) -> Tensor[]
//
// div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor
//   self: div_tensor_self_backward(grad, other, self.scalar_type(), rounding_mode)
//   other: div_tensor_other_backward(grad, self, other, rounding_mode)
//
// inline: every name in its formulas links
#line 1 "DivBackward2 (generated)"
static void DivBackward2_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 2> needs_input_grad,
    [[maybe_unused]] const at::Tensor& other,
    [[maybe_unused]] const std::optional<std::string>& rounding_mode,
    [[maybe_unused]] const at::Tensor& self,
    [[maybe_unused]] at::ScalarType self_scalar_type) {
  const auto& grad = grads[0];
  const bool any_grad_defined = any_defined(grads);
  if (needs_input_grad[1]) {
    if (any_grad_defined) grad_inputs[1] = (
#line BACKBIND_LINE_DivBackward2_other BACKBIND_YAML
      div_tensor_other_backward(grad, self, other, rounding_mode.has_value() ? std::optional<std::string_view>(rounding_mode.value()) : std::nullopt)
#line 1 "DivBackward2 (generated)"
    );
  }
  if (needs_input_grad[0]) {
    if (any_grad_defined) grad_inputs[0] = (
#line BACKBIND_LINE_DivBackward2_self BACKBIND_YAML
      div_tensor_self_backward(grad, other, self_scalar_type, rounding_mode.has_value() ? std::optional<std::string_view>(rounding_mode.value()) : std::nullopt)
#line 1 "DivBackward2 (generated)"
    );
  }
}

variable_list DivBackward2_apply_functional(variable_list&& grads, std::array<bool, 2> needs_input_grad,
    const at::Tensor& other,
    const std::optional<std::string>& rounding_mode,
    const at::Tensor& self,
    at::ScalarType self_scalar_type) {
  variable_list grad_inputs(2);
  DivBackward2_formulas(grads, grad_inputs, needs_input_grad, other, rounding_mode, self, self_scalar_type);
  return grad_inputs;
}

bool DivBackward2_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::DivBackward2&>(base);
  const torch_private::NodeLock lock(base);
  const Tensor* other = torch_private::saved_tensor(node.other_);
  const Tensor* self = torch_private::saved_tensor(node.self_);
  if (!are_plain_dense({other, self})) return false;
  const BelowADInplaceOrView keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  DivBackward2_formulas(frame.gradients, frame.results, {frame.needs_input_grad[0] != 0, frame.needs_input_grad[1] != 0}, *other, node.rounding_mode, *self, node.self_scalar_type);
  return true;
}

variable_list DivBackward2_apply_delegate(variable_list&& grads, std::array<bool, 2> needs_input_grad,
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
    fill(node->other_, other);
    fill(node->self_, self);
  }
  node->rounding_mode = rounding_mode;
  node->self_scalar_type = self_scalar_type;
  return node->apply(std::move(grads));
}

static variable_list DivBackward2_call(decltype(&DivBackward2_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("DivBackward2", arguments, 5);
  const auto needs_input_grad = reader.needs_input_grad<2>();
  const auto other = reader.read<at::Tensor>();
  const auto rounding_mode = reader.read<std::optional<std::string>>();
  const auto self = reader.read<at::Tensor>();
  const auto self_scalar_type = reader.read<at::ScalarType>();
  const Preconditions check("DivBackward2");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0] || needs_input_grad[1]) check.defined(grads, {"other", other});
  if (needs_input_grad[1]) check.defined(grads, {"self", self});
  return functional(variable_list(grads), needs_input_grad, other, rounding_mode, self, self_scalar_type);
}

variable_list DivBackward2_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return DivBackward2_call(&DivBackward2_apply_functional, grads, arguments);
}

variable_list DivBackward2_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return DivBackward2_call(&DivBackward2_apply_delegate, grads, arguments);
}

void DivBackward2_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::DivBackward2&>(base);
  writer.needs_input_grad({1, 1});
  writer.write(node.other_);
  writer.write(node.rounding_mode);
  writer.write(node.self_);
  writer.write(node.self_scalar_type);
}

constexpr std::array<Argument, 4> DivBackward2_arguments{{    {"other", {ElementKind::kTensor, Form::kOptional}},    {"rounding_mode", {ElementKind::kStr, Form::kOptional}},    {"self", {ElementKind::kTensor, Form::kOptional}},    {"self_scalar_type", {ElementKind::kScalarType, Form::kOne}}}};

constexpr std::array<const char*, 4> DivBackward2_step_operators{"div", "mul", "neg", "zeros_like"};

const Binding DivBackward2_binding{
    "DivBackward2",
    "DivBackward2(Tensor?[] grads, bool[2] needs_input_grad, Tensor? other, str? rounding_mode, Tensor? self, ScalarType self_scalar_type) -> Tensor[]",
    &typeid(structs::DivBackward2),
    2,
    1,
    true,
    DivBackward2_arguments,
    &DivBackward2_apply_functional_ivalue,
    &DivBackward2_apply_delegate_ivalue,
    &DivBackward2_pack,
    nullptr,
    &DivBackward2_step,
    DivBackward2_step_operators};
