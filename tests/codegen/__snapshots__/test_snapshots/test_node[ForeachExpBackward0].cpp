// ==== ForeachExpBackward0 ==================================================================================
// ForeachExpBackward0(Tensor?[] grads, bool[1] needs_input_grad, Tensor[] result, int self_size) -> Tensor[]
//
// exp(Tensor self) -> Tensor
// foreach of it: _foreach_exp(Tensor[] self) -> Tensor[]
//   self: grad * result.conj()
//
// inline: every name in its formulas links
#line 1 "ForeachExpBackward0 (generated)"
static void ForeachExpBackward0_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 1> needs_input_grad,
    [[maybe_unused]] const std::vector<at::Tensor>& result,
    [[maybe_unused]] size_t self_size) {
  [[maybe_unused]] const size_t self_begin = 0;
  if (needs_input_grad[0]) {
    for (size_t i = 0; i < self_size; ++i) {
      if (!grads[i].defined()) continue;
      grad_inputs[self_begin + i] = (
#line BACKBIND_LINE_ForeachExpBackward0_self BACKBIND_YAML
      grads[i] * result[i].conj()
#line 1 "ForeachExpBackward0 (generated)"
      );
    }
  }
}

variable_list ForeachExpBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const std::vector<at::Tensor>& result,
    size_t self_size) {
  variable_list grad_inputs(self_size);
  ForeachExpBackward0_formulas(grads, grad_inputs, needs_input_grad, result, self_size);
  return grad_inputs;
}

bool ForeachExpBackward0_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::ForeachExpBackward0&>(base);
  if (frame.gradients.size() < node.self_size_) return false;
  const torch_private::NodeLock lock(base);
  const auto result = saved_list<std::vector<at::Tensor>>(node.result_, node.result_released_);
  if (!result) return false;
  EdgeFlags flags(frame.needs_input_grad);
  const BelowADInplaceOrView keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  ForeachExpBackward0_formulas(frame.gradients, frame.results, {flags.list(node.self_size_)}, *result, node.self_size_);
  return true;
}

variable_list ForeachExpBackward0_apply_delegate(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const std::vector<at::Tensor>& result,
    size_t self_size) {
  DelegateEdges edges(self_size);
  edges.add_list(needs_input_grad[0], self_size);
  const DelegateOwner owner(make_delegate<structs::ForeachExpBackward0>(std::move(edges)));
  auto* node = static_cast<structs::ForeachExpBackward0*>(&owner.node());
  {
    FieldFiller fill;
    fill(node->result_, result);
  }
  node->self_size_ = self_size;
  return node->apply(std::move(grads));
}

static variable_list ForeachExpBackward0_call(decltype(&ForeachExpBackward0_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("ForeachExpBackward0", arguments, 3);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto result = reader.read<std::vector<at::Tensor>>();
  const auto self_size = reader.read<size_t>();
  const Preconditions check("ForeachExpBackward0");
  check.gradient_count(grads, self_size);
  if (needs_input_grad[0]) check.list_length("result", result.size(), self_size);
  return functional(variable_list(grads), needs_input_grad, result, self_size);
}

variable_list ForeachExpBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return ForeachExpBackward0_call(&ForeachExpBackward0_apply_functional, grads, arguments);
}

variable_list ForeachExpBackward0_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return ForeachExpBackward0_call(&ForeachExpBackward0_apply_delegate, grads, arguments);
}

void ForeachExpBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::ForeachExpBackward0&>(base);
  writer.needs_input_grad({node.self_size_});
  writer.write_list(node.result_, node.result_released_);
  writer.write(node.self_size_);
}

static size_t ForeachExpBackward0_edge_count(const torch::autograd::Node& base) {
  const auto& node = static_cast<const structs::ForeachExpBackward0&>(base);
  return node.self_size_;
}

constexpr std::array<Argument, 2> ForeachExpBackward0_arguments{{    {"result", {ElementKind::kTensor, Form::kList}},    {"self_size", {ElementKind::kInt, Form::kOne}}}};

constexpr std::array<const char*, 3> ForeachExpBackward0_step_operators{"conj", "mul", "select"};

const Binding ForeachExpBackward0_binding{
    "ForeachExpBackward0",
    "ForeachExpBackward0(Tensor?[] grads, bool[1] needs_input_grad, Tensor[] result, int self_size) -> Tensor[]",
    &typeid(structs::ForeachExpBackward0),
    1,
    -1,
    true,
    ForeachExpBackward0_arguments,
    &ForeachExpBackward0_apply_functional_ivalue,
    &ForeachExpBackward0_apply_delegate_ivalue,
    &ForeachExpBackward0_pack,
    &ForeachExpBackward0_edge_count,
    &ForeachExpBackward0_step,
    ForeachExpBackward0_step_operators};
