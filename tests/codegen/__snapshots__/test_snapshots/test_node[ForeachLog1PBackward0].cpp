// ==== ForeachLog1PBackward0 ================================================================================
// ForeachLog1PBackward0(Tensor?[] grads, bool[1] needs_input_grad, Tensor[] self, int self_size) -> Tensor[]
//
// log1p(Tensor self) -> Tensor
// foreach of it: _foreach_log1p(Tensor[] self) -> Tensor[]
//   self: log1p_backward(grad, self)
//
// delegate: 'log1p_backward' in the formula of 'self' is not exported by torch
#line 1 "ForeachLog1PBackward0 (generated)"
variable_list ForeachLog1PBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const std::vector<at::Tensor>& self,
    size_t self_size) {
  DelegateEdges edges(self_size);
  edges.add_list(needs_input_grad[0], self_size);
  const DelegateOwner owner(make_delegate<structs::ForeachLog1PBackward0>(std::move(edges)));
  auto* node = static_cast<structs::ForeachLog1PBackward0*>(&owner.node());
  {
    FieldFiller fill;
    fill(node->self_, self);
  }
  node->self_size_ = self_size;
  return node->apply(std::move(grads));
}

variable_list ForeachLog1PBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  ArgumentReader reader("ForeachLog1PBackward0", arguments, 3);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto self = reader.read<std::vector<at::Tensor>>();
  const auto self_size = reader.read<size_t>();
  const Preconditions check("ForeachLog1PBackward0");
  check.gradient_count(grads, self_size);
  if (needs_input_grad[0]) check.list_length("self", self.size(), self_size);
  return ForeachLog1PBackward0_apply_functional(variable_list(grads), needs_input_grad, self, self_size);
}

void ForeachLog1PBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::ForeachLog1PBackward0&>(base);
  writer.needs_input_grad({node.self_size_});
  writer.write_list(node.self_, node.self_released_);
  writer.write(node.self_size_);
}

constexpr std::array<Argument, 2> ForeachLog1PBackward0_arguments{{    {"self", {ElementKind::kTensor, Form::kList}},    {"self_size", {ElementKind::kInt, Form::kOne}}}};

const Binding ForeachLog1PBackward0_binding{
    "ForeachLog1PBackward0",
    "ForeachLog1PBackward0(Tensor?[] grads, bool[1] needs_input_grad, Tensor[] self, int self_size) -> Tensor[]",
    &typeid(structs::ForeachLog1PBackward0),
    1,
    -1,
    false,
    ForeachLog1PBackward0_arguments,
    &ForeachLog1PBackward0_apply_functional_ivalue,
    &ForeachLog1PBackward0_apply_functional_ivalue,
    &ForeachLog1PBackward0_pack,
    nullptr,
    nullptr,
    {}};
