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
    fill.tensor(node->self_, self);
    fill.tensor(node->max_, max);
    fill.tensor(node->min_, min);
  }
  node->dim = dim;
  node->keepdim = keepdim;
  return node->apply(std::move(grads));
}

variable_list AminmaxBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  ArgumentReader reader("AminmaxBackward0", arguments, 6);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto dim = reader.optional_integer();
  const auto keepdim = reader.boolean();
  const auto self = reader.tensor();
  const auto max = reader.tensor();
  const auto min = reader.tensor();
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
  writer.optional_integer(node.dim);
  writer.boolean(node.keepdim);
  writer.tensor(node.self_);
  writer.tensor(node.max_);
  writer.tensor(node.min_);
}

constexpr std::array<Argument, 5> AminmaxBackward0_arguments{{    {"dim", ValueKind::OptionalInt},    {"keepdim", ValueKind::Bool},    {"self", ValueKind::OptionalTensor},    {"max", ValueKind::OptionalTensor},    {"min", ValueKind::OptionalTensor}}};

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
