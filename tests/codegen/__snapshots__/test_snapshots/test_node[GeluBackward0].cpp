// ==== GeluBackward0 ========================================================================================
// GeluBackward0(Tensor?[] grads, bool[1] needs_input_grad, str approximate, Tensor? self) -> Tensor[]
//
// gelu(Tensor self, *, str approximate='none') -> Tensor
//   self: gelu_backward(grad, self, approximate)
//
// inline: every name in its formulas links
#line 1 "GeluBackward0 (generated)"
static void GeluBackward0_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 1> needs_input_grad,
    [[maybe_unused]] const std::string& approximate,
    [[maybe_unused]] const at::Tensor& self) {
  const auto& grad = grads[0];
  const bool any_grad_defined = any_defined(grads);
  if (needs_input_grad[0]) {
    if (any_grad_defined) grad_inputs[0] = (
#line BACKBIND_LINE_GeluBackward0_self BACKBIND_YAML
      gelu_backward(grad, self, approximate)
#line 1 "GeluBackward0 (generated)"
    );
  }
}

variable_list GeluBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const std::string& approximate,
    const at::Tensor& self) {
  variable_list grad_inputs(1);
  GeluBackward0_formulas(grads, grad_inputs, needs_input_grad, approximate, self);
  return grad_inputs;
}

bool GeluBackward0_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::GeluBackward0&>(base);
  const torch_private::NodeLock lock(base);
  const Tensor* self = torch_private::saved_tensor(node.self_);
  if (!are_plain_dense({self})) return false;
  const BelowADInplaceOrView keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  GeluBackward0_formulas(frame.gradients, frame.results, {frame.needs_input_grad[0] != 0}, node.approximate, *self);
  return true;
}

variable_list GeluBackward0_apply_delegate(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const std::string& approximate,
    const at::Tensor& self) {
  DelegateEdges edges(1);
  edges.add(needs_input_grad[0]);
  const DelegateOwner owner(make_delegate<structs::GeluBackward0>(std::move(edges)));
  auto* node = static_cast<structs::GeluBackward0*>(&owner.node());
  {
    FieldFiller fill;
    fill(node->self_, self);
  }
  node->approximate = approximate;
  return node->apply(std::move(grads));
}

static variable_list GeluBackward0_call(decltype(&GeluBackward0_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("GeluBackward0", arguments, 3);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto approximate = reader.read<std::string>();
  const auto self = reader.read<at::Tensor>();
  const Preconditions check("GeluBackward0");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0]) check.defined(grads, {"self", self});
  return functional(variable_list(grads), needs_input_grad, approximate, self);
}

variable_list GeluBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return GeluBackward0_call(&GeluBackward0_apply_functional, grads, arguments);
}

variable_list GeluBackward0_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return GeluBackward0_call(&GeluBackward0_apply_delegate, grads, arguments);
}

void GeluBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::GeluBackward0&>(base);
  writer.needs_input_grad({1});
  writer.write(node.approximate);
  writer.write(node.self_);
}

constexpr std::array<Argument, 2> GeluBackward0_arguments{{    {"approximate", {ElementKind::kStr, Form::kOne}},    {"self", {ElementKind::kTensor, Form::kOptional}}}};

constexpr std::array<const char*, 1> GeluBackward0_step_operators{"gelu_backward"};

const Binding GeluBackward0_binding{
    "GeluBackward0",
    "GeluBackward0(Tensor?[] grads, bool[1] needs_input_grad, str approximate, Tensor? self) -> Tensor[]",
    &typeid(structs::GeluBackward0),
    1,
    1,
    true,
    GeluBackward0_arguments,
    &GeluBackward0_apply_functional_ivalue,
    &GeluBackward0_apply_delegate_ivalue,
    &GeluBackward0_pack,
    nullptr,
    &GeluBackward0_step,
    GeluBackward0_step_operators};
