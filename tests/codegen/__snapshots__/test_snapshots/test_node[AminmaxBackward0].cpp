// ==== AminmaxBackward0 =====================================================================================
// AminmaxBackward0(Tensor?[] grads, bool[1] needs_input_grad, int? dim, bool keepdim, Tensor? self, Tensor? max, Tensor? min) -> Tensor[]
//
// aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)
//   self: aminmax_backward(self, dim, keepdim, grad_min, grad_max, min, max)
//
// delegate: 'aminmax_backward' in the formula of 'self' is not exported by torch
#line 1 "AminmaxBackward0 (generated)"
variable_list AminmaxBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    std::optional<int64_t> dim,
    bool keepdim,
    const at::Tensor& self,
    const at::Tensor& max,
    const at::Tensor& min) {
  DelegateEdges edges(1);
  edges.add(needs_input_grad[0]);
  const DelegateOwner owner(make_delegate<structs::AminmaxBackward0>(std::move(edges)));
  auto* node = static_cast<structs::AminmaxBackward0*>(&owner.node());
  {
    FieldFiller fill;
    fill(node->self_, self);
    fill(node->max_, max);
    fill(node->min_, min);
  }
  node->dim = dim;
  node->keepdim = keepdim;
  return node->apply(std::move(grads));
}

variable_list AminmaxBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  ArgumentReader reader("AminmaxBackward0", arguments, 6);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto dim = reader.read<std::optional<int64_t>>();
  const auto keepdim = reader.read<bool>();
  const auto self = reader.read<at::Tensor>();
  const auto max = reader.read<at::Tensor>();
  const auto min = reader.read<at::Tensor>();
  const Preconditions check("AminmaxBackward0");
  check.gradient_count(grads, 2);
  if (needs_input_grad[0]) check.dim("dim", dim, self.dim());
  if (needs_input_grad[0]) check.defined(grads, {"self", self});
  if (needs_input_grad[0]) check.defined(grads, {"max", max});
  if (needs_input_grad[0]) check.defined(grads, {"min", min});
  if (needs_input_grad[0]) check.reduced("dim", dim, keepdim, {"grads", grads[0]});
  if (needs_input_grad[0]) check.reduced("dim", dim, keepdim, {"grads", grads[1]});
  if (needs_input_grad[0]) check.reduced("dim", dim, keepdim, {"min", min});
  if (needs_input_grad[0]) check.reduced("dim", dim, keepdim, {"max", max});
  return AminmaxBackward0_apply_functional(variable_list(grads), needs_input_grad, dim, keepdim, self, max, min);
}

void AminmaxBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::AminmaxBackward0&>(base);
  writer.needs_input_grad({1});
  writer.write(node.dim);
  writer.write(node.keepdim);
  writer.write(node.self_);
  writer.write(node.max_);
  writer.write(node.min_);
}

constexpr std::array<Argument, 5> AminmaxBackward0_arguments{{    {"dim", {ElementKind::kInt, Form::kOptional}},    {"keepdim", {ElementKind::kBool, Form::kOne}},    {"self", {ElementKind::kTensor, Form::kOptional}},    {"max", {ElementKind::kTensor, Form::kOptional}},    {"min", {ElementKind::kTensor, Form::kOptional}}}};

const Binding AminmaxBackward0_binding{
    "AminmaxBackward0",
    "AminmaxBackward0(Tensor?[] grads, bool[1] needs_input_grad, int? dim, bool keepdim, Tensor? self, Tensor? max, Tensor? min) -> Tensor[]",
    &typeid(structs::AminmaxBackward0),
    1,
    2,
    false,
    AminmaxBackward0_arguments,
    &AminmaxBackward0_apply_functional_ivalue,
    &AminmaxBackward0_apply_functional_ivalue,
    &AminmaxBackward0_pack,
    nullptr,
    nullptr,
    {}};
