// ==== SumBackwardAutogradNestedTensor1 =====================================================================
// SumBackwardAutogradNestedTensor1(Tensor?[] grads, bool[1] needs_input_grad, int[]? dim, bool keepdim, Tensor? self) -> Tensor[]
//
// sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor  [AutogradNestedTensor]
//   self: _nested_sum_backward(grad, self, dim, keepdim)
//
// inline: every name in its formulas links
#line 1 "SumBackwardAutogradNestedTensor1 (generated)"
static void SumBackwardAutogradNestedTensor1_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 1> needs_input_grad,
    [[maybe_unused]] c10::OptionalArray<int64_t> dim,
    [[maybe_unused]] bool keepdim,
    [[maybe_unused]] const at::Tensor& self) {
  const auto& grad = grads[0];
  const bool any_grad_defined = any_defined(grads);
  if (needs_input_grad[0]) {
    if (any_grad_defined) grad_inputs[0] = (
#line BACKBIND_LINE_SumBackwardAutogradNestedTensor1_self BACKBIND_YAML
      _nested_sum_backward(grad, self, dim, keepdim)
#line 1 "SumBackwardAutogradNestedTensor1 (generated)"
    );
  }
}

variable_list SumBackwardAutogradNestedTensor1_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    c10::OptionalArray<int64_t> dim,
    bool keepdim,
    const at::Tensor& self) {
  variable_list grad_inputs(1);
  SumBackwardAutogradNestedTensor1_formulas(grads, grad_inputs, needs_input_grad, dim, keepdim, self);
  return grad_inputs;
}

bool SumBackwardAutogradNestedTensor1_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::SumBackwardAutogradNestedTensor1&>(base);
  const torch_private::NodeLock lock(base);
  const Tensor* self = torch_private::saved_tensor(node.self_);
  if (!are_plain_dense({self})) return false;
  const BelowADInplaceOrView keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  SumBackwardAutogradNestedTensor1_formulas(frame.gradients, frame.results, {frame.needs_input_grad[0] != 0}, node.dim, node.keepdim, *self);
  return true;
}

variable_list SumBackwardAutogradNestedTensor1_apply_delegate(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    c10::OptionalArray<int64_t> dim,
    bool keepdim,
    const at::Tensor& self) {
  DelegateEdges edges(1);
  edges.add(needs_input_grad[0]);
  const DelegateOwner owner(make_delegate<structs::SumBackwardAutogradNestedTensor1>(std::move(edges)));
  auto* node = static_cast<structs::SumBackwardAutogradNestedTensor1*>(&owner.node());
  {
    FieldFiller fill;
    fill(node->self_, self);
  }
  node->dim = dim;
  node->keepdim = keepdim;
  return node->apply(std::move(grads));
}

static variable_list SumBackwardAutogradNestedTensor1_call(decltype(&SumBackwardAutogradNestedTensor1_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("SumBackwardAutogradNestedTensor1", arguments, 4);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto dim = reader.read<c10::OptionalArray<int64_t>>();
  const auto keepdim = reader.read<bool>();
  const auto self = reader.read<at::Tensor>();
  const Preconditions check("SumBackwardAutogradNestedTensor1");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0]) check.dim("dim", dim, self.dim());
  if (needs_input_grad[0]) check.defined(grads, {"self", self});
  return functional(variable_list(grads), needs_input_grad, dim, keepdim, self);
}

variable_list SumBackwardAutogradNestedTensor1_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return SumBackwardAutogradNestedTensor1_call(&SumBackwardAutogradNestedTensor1_apply_functional, grads, arguments);
}

variable_list SumBackwardAutogradNestedTensor1_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return SumBackwardAutogradNestedTensor1_call(&SumBackwardAutogradNestedTensor1_apply_delegate, grads, arguments);
}

void SumBackwardAutogradNestedTensor1_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::SumBackwardAutogradNestedTensor1&>(base);
  writer.needs_input_grad({1});
  writer.write(node.dim);
  writer.write(node.keepdim);
  writer.write(node.self_);
}

constexpr std::array<Argument, 3> SumBackwardAutogradNestedTensor1_arguments{{    {"dim", {ElementKind::kInt, Form::kOptionalList}},    {"keepdim", {ElementKind::kBool, Form::kOne}},    {"self", {ElementKind::kTensor, Form::kOptional}}}};

constexpr std::array<const char*, 1> SumBackwardAutogradNestedTensor1_step_operators{"_nested_sum_backward"};

const Binding SumBackwardAutogradNestedTensor1_binding{
    "SumBackwardAutogradNestedTensor1",
    "SumBackwardAutogradNestedTensor1(Tensor?[] grads, bool[1] needs_input_grad, int[]? dim, bool keepdim, Tensor? self) -> Tensor[]",
    &typeid(structs::SumBackwardAutogradNestedTensor1),
    1,
    1,
    true,
    SumBackwardAutogradNestedTensor1_arguments,
    &SumBackwardAutogradNestedTensor1_apply_functional_ivalue,
    &SumBackwardAutogradNestedTensor1_apply_delegate_ivalue,
    &SumBackwardAutogradNestedTensor1_pack,
    nullptr,
    &SumBackwardAutogradNestedTensor1_step,
    SumBackwardAutogradNestedTensor1_step_operators};
