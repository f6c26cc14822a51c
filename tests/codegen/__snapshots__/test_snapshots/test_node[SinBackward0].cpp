// ==== SinBackward0 =========================================================================================
// SinBackward0(Tensor?[] grads, bool[1] needs_input_grad, Tensor? self) -> Tensor[]
//
// sin(Tensor self) -> Tensor
//   self: grad * self.cos().conj()
//
// inline: every name in its formulas links
#line 1 "SinBackward0 (generated)"
static void SinBackward0_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 1> needs_input_grad,
    [[maybe_unused]] const at::Tensor& self) {
  const auto& grad = grads[0];
  const bool any_grad_defined = any_defined(grads);
  if (needs_input_grad[0]) {
    if (any_grad_defined) grad_inputs[0] = (
#line BACKBIND_LINE_SinBackward0_self BACKBIND_YAML
      grad * self.cos().conj()
#line 1 "SinBackward0 (generated)"
    );
  }
}

variable_list SinBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const at::Tensor& self) {
  variable_list grad_inputs(1);
  SinBackward0_formulas(grads, grad_inputs, needs_input_grad, self);
  return grad_inputs;
}

bool SinBackward0_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::SinBackward0&>(base);
  const torch_private::NodeLock lock(base);
  const Tensor* self = torch_private::saved_tensor(node.self_);
  if (!are_plain_dense({self})) return false;
  const BelowADInplaceOrView keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  SinBackward0_formulas(frame.gradients, frame.results, {frame.needs_input_grad[0] != 0}, *self);
  return true;
}

variable_list SinBackward0_apply_delegate(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const at::Tensor& self) {
  DelegateEdges edges(1);
  edges.add(needs_input_grad[0]);
  const DelegateOwner owner(make_delegate<structs::SinBackward0>(std::move(edges)));
  auto* node = static_cast<structs::SinBackward0*>(&owner.node());
  {
    FieldFiller fill;
    fill(node->self_, self);
  }
  return node->apply(std::move(grads));
}

static variable_list SinBackward0_call(decltype(&SinBackward0_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("SinBackward0", arguments, 2);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto self = reader.read<at::Tensor>();
  const Preconditions check("SinBackward0");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0]) check.defined(grads, {"self", self});
  return functional(variable_list(grads), needs_input_grad, self);
}

variable_list SinBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return SinBackward0_call(&SinBackward0_apply_functional, grads, arguments);
}

variable_list SinBackward0_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return SinBackward0_call(&SinBackward0_apply_delegate, grads, arguments);
}

void SinBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::SinBackward0&>(base);
  writer.needs_input_grad({1});
  writer.write(node.self_);
}

constexpr std::array<Argument, 1> SinBackward0_arguments{{    {"self", {ElementKind::kTensor, Form::kOptional}}}};

constexpr std::array<const char*, 3> SinBackward0_step_operators{"conj", "cos", "mul"};

const Binding SinBackward0_binding{
    "SinBackward0",
    "SinBackward0(Tensor?[] grads, bool[1] needs_input_grad, Tensor? self) -> Tensor[]",
    &typeid(structs::SinBackward0),
    1,
    1,
    true,
    SinBackward0_arguments,
    &SinBackward0_apply_functional_ivalue,
    &SinBackward0_apply_delegate_ivalue,
    &SinBackward0_pack,
    nullptr,
    &SinBackward0_step,
    SinBackward0_step_operators};
