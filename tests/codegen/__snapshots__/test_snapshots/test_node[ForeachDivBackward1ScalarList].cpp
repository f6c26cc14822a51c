// ==== ForeachDivBackward1ScalarList ========================================================================
// ForeachDivBackward1ScalarList(Tensor?[] grads, bool[1] needs_input_grad, Scalar[] scalars, Tensor[] self, int self_size) -> Tensor[]
//
// div.Scalar(Tensor self, Scalar other) -> Tensor
// foreach of it: _foreach_div.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]
//   self: div_tensor_self_backward(grad, other, self.scalar_type())
//
// inline: every name in its formulas links
#line 1 "ForeachDivBackward1ScalarList (generated)"
static void ForeachDivBackward1ScalarList_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 1> needs_input_grad,
    [[maybe_unused]] const std::vector<at::Scalar>& scalars,
    [[maybe_unused]] const std::vector<at::Tensor>& self,
    [[maybe_unused]] size_t self_size) {
  [[maybe_unused]] const size_t self_begin = 0;
  if (needs_input_grad[0]) {
    for (size_t i = 0; i < self_size; ++i) {
      if (!grads[i].defined()) continue;
      grad_inputs[self_begin + i] = (
#line BACKBIND_LINE_ForeachDivBackward1ScalarList_self BACKBIND_YAML
      div_tensor_self_backward(grads[i], scalars[i], self[i].scalar_type())
#line 1 "ForeachDivBackward1ScalarList (generated)"
      );
    }
  }
}

variable_list ForeachDivBackward1ScalarList_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const std::vector<at::Scalar>& scalars,
    const std::vector<at::Tensor>& self,
    size_t self_size) {
  variable_list grad_inputs(self_size);
  ForeachDivBackward1ScalarList_formulas(grads, grad_inputs, needs_input_grad, scalars, self, self_size);
  return grad_inputs;
}

bool ForeachDivBackward1ScalarList_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::ForeachDivBackward1ScalarList&>(base);
  if (frame.gradients.size() < node.self_size_) return false;
  const torch_private::NodeLock lock(base);
  const auto self = saved_list<std::vector<at::Tensor>>(node.self_, node.self_released_);
  if (!self) return false;
  EdgeFlags flags(frame.needs_input_grad);
  const AllKeys keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  ForeachDivBackward1ScalarList_formulas(frame.gradients, frame.results, {flags.list(node.self_size_)}, node.scalars, *self, node.self_size_);
  return true;
}

variable_list ForeachDivBackward1ScalarList_apply_delegate(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const std::vector<at::Scalar>& scalars,
    const std::vector<at::Tensor>& self,
    size_t self_size) {
  DelegateEdges edges(self_size);
  edges.add_list(needs_input_grad[0], self_size);
  const DelegateOwner owner(make_delegate<structs::ForeachDivBackward1ScalarList>(std::move(edges)));
  auto* node = static_cast<structs::ForeachDivBackward1ScalarList*>(&owner.node());
  {
    FieldFiller fill;
    fill(node->self_, self);
  }
  node->scalars = scalars;
  node->self_size_ = self_size;
  return node->apply(std::move(grads));
}

static variable_list ForeachDivBackward1ScalarList_call(decltype(&ForeachDivBackward1ScalarList_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("ForeachDivBackward1ScalarList", arguments, 4);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto scalars = reader.read<std::vector<at::Scalar>>();
  const auto self = reader.read<std::vector<at::Tensor>>();
  const auto self_size = reader.read<size_t>();
  const Preconditions check("ForeachDivBackward1ScalarList");
  check.gradient_count(grads, self_size);
  if (needs_input_grad[0]) check.list_length("scalars", scalars.size(), self_size);
  if (needs_input_grad[0]) check.list_length("self", self.size(), self_size);
  return functional(variable_list(grads), needs_input_grad, scalars, self, self_size);
}

variable_list ForeachDivBackward1ScalarList_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return ForeachDivBackward1ScalarList_call(&ForeachDivBackward1ScalarList_apply_functional, grads, arguments);
}

variable_list ForeachDivBackward1ScalarList_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return ForeachDivBackward1ScalarList_call(&ForeachDivBackward1ScalarList_apply_delegate, grads, arguments);
}

void ForeachDivBackward1ScalarList_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::ForeachDivBackward1ScalarList&>(base);
  writer.needs_input_grad({node.self_size_});
  writer.write(node.scalars);
  writer.write_list(node.self_, node.self_released_);
  writer.write(node.self_size_);
}

static size_t ForeachDivBackward1ScalarList_edge_count(const torch::autograd::Node& base) {
  const auto& node = static_cast<const structs::ForeachDivBackward1ScalarList&>(base);
  return node.self_size_;
}

constexpr std::array<Argument, 3> ForeachDivBackward1ScalarList_arguments{{    {"scalars", {ElementKind::kScalar, Form::kList}},    {"self", {ElementKind::kTensor, Form::kList}},    {"self_size", {ElementKind::kInt, Form::kOne}}}};

const Binding ForeachDivBackward1ScalarList_binding{
    "ForeachDivBackward1ScalarList",
    "ForeachDivBackward1ScalarList(Tensor?[] grads, bool[1] needs_input_grad, Scalar[] scalars, Tensor[] self, int self_size) -> Tensor[]",
    &typeid(structs::ForeachDivBackward1ScalarList),
    1,
    -1,
    true,
    ForeachDivBackward1ScalarList_arguments,
    &ForeachDivBackward1ScalarList_apply_functional_ivalue,
    &ForeachDivBackward1ScalarList_apply_delegate_ivalue,
    &ForeachDivBackward1ScalarList_pack,
    &ForeachDivBackward1ScalarList_edge_count,
    &ForeachDivBackward1ScalarList_step,
    {}};
