// ==== CdistBackwardBackward0 ===============================================================================
// CdistBackwardBackward0(Tensor?[] grads, bool[4] needs_input_grad) -> Tensor[]
//
// _cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor
//   grad: not_implemented("_cdist_backward")
//   x1: not_implemented("_cdist_backward")
//   x2: not_implemented("_cdist_backward")
//   cdist: not_implemented("_cdist_backward")
//
// inline: every name in its formulas links
#line 1 "CdistBackwardBackward0 (generated)"
static void CdistBackwardBackward0_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 4> needs_input_grad) {
  if (needs_input_grad[3]) {
    grad_inputs[3] = (
#line BACKBIND_LINE_CdistBackwardBackward0_cdist BACKBIND_YAML
      not_implemented("_cdist_backward")
#line 1 "CdistBackwardBackward0 (generated)"
    );
  }
  if (needs_input_grad[0]) {
    grad_inputs[0] = (
#line BACKBIND_LINE_CdistBackwardBackward0_grad BACKBIND_YAML
      not_implemented("_cdist_backward")
#line 1 "CdistBackwardBackward0 (generated)"
    );
  }
  if (needs_input_grad[1]) {
    grad_inputs[1] = (
#line BACKBIND_LINE_CdistBackwardBackward0_x1 BACKBIND_YAML
      not_implemented("_cdist_backward")
#line 1 "CdistBackwardBackward0 (generated)"
    );
  }
  if (needs_input_grad[2]) {
    grad_inputs[2] = (
#line BACKBIND_LINE_CdistBackwardBackward0_x2 BACKBIND_YAML
      not_implemented("_cdist_backward")
#line 1 "CdistBackwardBackward0 (generated)"
    );
  }
}

variable_list CdistBackwardBackward0_apply_functional(variable_list&& grads, std::array<bool, 4> needs_input_grad) {
  variable_list grad_inputs(4);
  CdistBackwardBackward0_formulas(grads, grad_inputs, needs_input_grad);
  return grad_inputs;
}

bool CdistBackwardBackward0_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::CdistBackwardBackward0&>(base);
  const torch_private::NodeLock lock(base);
  const AllKeys keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  CdistBackwardBackward0_formulas(frame.gradients, frame.results, {frame.needs_input_grad[0] != 0, frame.needs_input_grad[1] != 0, frame.needs_input_grad[2] != 0, frame.needs_input_grad[3] != 0});
  return true;
}

variable_list CdistBackwardBackward0_apply_delegate(variable_list&& grads, std::array<bool, 4> needs_input_grad) {
  DelegateEdges edges(4);
  edges.add(needs_input_grad[0]);
  edges.add(needs_input_grad[1]);
  edges.add(needs_input_grad[2]);
  edges.add(needs_input_grad[3]);
  const DelegateOwner owner(make_delegate<structs::CdistBackwardBackward0>(std::move(edges)));
  auto* node = static_cast<structs::CdistBackwardBackward0*>(&owner.node());
  return node->apply(std::move(grads));
}

static variable_list CdistBackwardBackward0_call(decltype(&CdistBackwardBackward0_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("CdistBackwardBackward0", arguments, 1);
  const auto needs_input_grad = reader.needs_input_grad<4>();
  const Preconditions check("CdistBackwardBackward0");
  check.gradient_count(grads, 1);
  return functional(variable_list(grads), needs_input_grad);
}

variable_list CdistBackwardBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return CdistBackwardBackward0_call(&CdistBackwardBackward0_apply_functional, grads, arguments);
}

variable_list CdistBackwardBackward0_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return CdistBackwardBackward0_call(&CdistBackwardBackward0_apply_delegate, grads, arguments);
}

void CdistBackwardBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::CdistBackwardBackward0&>(base);
  writer.needs_input_grad({1, 1, 1, 1});
}

constexpr std::array<Argument, 0> CdistBackwardBackward0_arguments{};

const Binding CdistBackwardBackward0_binding{
    "CdistBackwardBackward0",
    "CdistBackwardBackward0(Tensor?[] grads, bool[4] needs_input_grad) -> Tensor[]",
    &typeid(structs::CdistBackwardBackward0),
    4,
    1,
    true,
    CdistBackwardBackward0_arguments,
    &CdistBackwardBackward0_apply_functional_ivalue,
    &CdistBackwardBackward0_apply_delegate_ivalue,
    &CdistBackwardBackward0_pack,
    nullptr,
    &CdistBackwardBackward0_step,
    {}};
