// ==== ExpandBackward0 ======================================================================================
// ExpandBackward0(Tensor?[] grads, bool[1] needs_input_grad, SymInt[] self_sym_sizes) -> Tensor[]
//
// expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
//   self: at::sum_to(grad, self.sym_sizes())
//
// inline: every name in its formulas links
#line 1 "ExpandBackward0 (generated)"
static void ExpandBackward0_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 1> needs_input_grad,
    [[maybe_unused]] const std::vector<c10::SymInt>& self_sym_sizes) {
  const auto& grad = grads[0];
  const bool any_grad_defined = any_defined(grads);
  if (needs_input_grad[0]) {
    if (any_grad_defined) grad_inputs[0] = (
#line BACKBIND_LINE_ExpandBackward0_self BACKBIND_YAML
      at::sum_to(grad, self_sym_sizes)
#line 1 "ExpandBackward0 (generated)"
    );
  }
}

variable_list ExpandBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const std::vector<c10::SymInt>& self_sym_sizes) {
  variable_list grad_inputs(1);
  ExpandBackward0_formulas(grads, grad_inputs, needs_input_grad, self_sym_sizes);
  return grad_inputs;
}

bool ExpandBackward0_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::ExpandBackward0&>(base);
  const torch_private::NodeLock lock(base);
  const AllKeys keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  ExpandBackward0_formulas(frame.gradients, frame.results, {frame.needs_input_grad[0] != 0}, node.self_sym_sizes);
  return true;
}

variable_list ExpandBackward0_apply_delegate(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const std::vector<c10::SymInt>& self_sym_sizes) {
  DelegateEdges edges(1);
  edges.add(needs_input_grad[0]);
  const DelegateOwner owner(make_delegate<structs::ExpandBackward0>(std::move(edges)));
  auto* node = static_cast<structs::ExpandBackward0*>(&owner.node());
  node->self_sym_sizes = self_sym_sizes;
  return node->apply(std::move(grads));
}

static variable_list ExpandBackward0_call(decltype(&ExpandBackward0_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("ExpandBackward0", arguments, 2);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto self_sym_sizes = reader.read<std::vector<c10::SymInt>>();
  const Preconditions check("ExpandBackward0");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0]) check.expanded(grads, self_sym_sizes);
  return functional(variable_list(grads), needs_input_grad, self_sym_sizes);
}

variable_list ExpandBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return ExpandBackward0_call(&ExpandBackward0_apply_functional, grads, arguments);
}

variable_list ExpandBackward0_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return ExpandBackward0_call(&ExpandBackward0_apply_delegate, grads, arguments);
}

void ExpandBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::ExpandBackward0&>(base);
  writer.needs_input_grad({1});
  writer.write(node.self_sym_sizes);
}

constexpr std::array<Argument, 1> ExpandBackward0_arguments{{    {"self_sym_sizes", {ElementKind::kSymInt, Form::kList}}}};

const Binding ExpandBackward0_binding{
    "ExpandBackward0",
    "ExpandBackward0(Tensor?[] grads, bool[1] needs_input_grad, SymInt[] self_sym_sizes) -> Tensor[]",
    &typeid(structs::ExpandBackward0),
    1,
    1,
    true,
    ExpandBackward0_arguments,
    &ExpandBackward0_apply_functional_ivalue,
    &ExpandBackward0_apply_delegate_ivalue,
    &ExpandBackward0_pack,
    nullptr,
    &ExpandBackward0_step,
    {}};
