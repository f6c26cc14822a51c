// ==== CatBackward0 =========================================================================================
// CatBackward0(Tensor?[] grads, bool[1] needs_input_grad, int dim, ScalarType[] tensors_args_scalartypes, SymInt[] tensors_args_sizes_symint_values, int[] tensors_args_sizes_symint_lengths, int tensors_size) -> Tensor[]
//
// cat(Tensor[] tensors, int dim=0) -> Tensor
//   tensors: cat_tensors_backward(grad, to_args_sizes_symint(tensors), to_args_scalartypes(tensors), dim)
//
// inline: every name in its formulas links
#line 1 "CatBackward0 (generated)"
static void CatBackward0_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 1> needs_input_grad,
    [[maybe_unused]] int64_t dim,
    [[maybe_unused]] const std::vector<at::ScalarType>& tensors_args_scalartypes,
    [[maybe_unused]] const std::vector<std::vector<c10::SymInt>>& tensors_args_sizes_symint,
    [[maybe_unused]] size_t tensors_size) {
  const auto& grad = grads[0];
  [[maybe_unused]] const size_t tensors_begin = 0;
  if (needs_input_grad[0]) {
    std::vector<Tensor> gradients = (
#line BACKBIND_LINE_CatBackward0_tensors BACKBIND_YAML
      cat_tensors_backward(grad, tensors_args_sizes_symint, tensors_args_scalartypes, dim)
#line 1 "CatBackward0 (generated)"
    );
    place_list("CatBackward0", grad_inputs, tensors_begin, tensors_size, std::move(gradients));
  }
}

variable_list CatBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    int64_t dim,
    const std::vector<at::ScalarType>& tensors_args_scalartypes,
    const std::vector<std::vector<c10::SymInt>>& tensors_args_sizes_symint,
    size_t tensors_size) {
  variable_list grad_inputs(tensors_size);
  CatBackward0_formulas(grads, grad_inputs, needs_input_grad, dim, tensors_args_scalartypes, tensors_args_sizes_symint, tensors_size);
  return grad_inputs;
}

bool CatBackward0_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::CatBackward0&>(base);
  const torch_private::NodeLock lock(base);
  EdgeFlags flags(frame.needs_input_grad);
  const BelowAutograd keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  CatBackward0_formulas(frame.gradients, frame.results, {flags.list(node.tensors_size_)}, node.dim, node.tensors_args_scalartypes, node.tensors_args_sizes_symint, node.tensors_size_);
  return true;
}

variable_list CatBackward0_apply_delegate(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    int64_t dim,
    const std::vector<at::ScalarType>& tensors_args_scalartypes,
    const std::vector<std::vector<c10::SymInt>>& tensors_args_sizes_symint,
    size_t tensors_size) {
  DelegateEdges edges(tensors_size);
  edges.add_list(needs_input_grad[0], tensors_size);
  const DelegateOwner owner(make_delegate<structs::CatBackward0>(std::move(edges)));
  auto* node = static_cast<structs::CatBackward0*>(&owner.node());
  node->dim = dim;
  node->tensors_args_scalartypes = tensors_args_scalartypes;
  node->tensors_args_sizes_symint = tensors_args_sizes_symint;
  node->tensors_size_ = tensors_size;
  return node->apply(std::move(grads));
}

static variable_list CatBackward0_call(decltype(&CatBackward0_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("CatBackward0", arguments, 6);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto dim = reader.read<int64_t>();
  const auto tensors_args_scalartypes = reader.read<std::vector<at::ScalarType>>();
  const auto tensors_args_sizes_symint = reader.read<std::vector<std::vector<c10::SymInt>>>();
  const auto tensors_size = reader.read<size_t>();
  const Preconditions check("CatBackward0");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0]) check.list_length("tensors_args_scalartypes", tensors_args_scalartypes.size(), tensors_size);
  if (needs_input_grad[0]) check.list_length("tensors_args_sizes_symint_lengths", tensors_args_sizes_symint.size(), tensors_size);
  if (needs_input_grad[0]) check.joined_along("dim", dim, tensors_args_sizes_symint);
  return functional(variable_list(grads), needs_input_grad, dim, tensors_args_scalartypes, tensors_args_sizes_symint, tensors_size);
}

variable_list CatBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return CatBackward0_call(&CatBackward0_apply_functional, grads, arguments);
}

variable_list CatBackward0_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return CatBackward0_call(&CatBackward0_apply_delegate, grads, arguments);
}

void CatBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::CatBackward0&>(base);
  writer.needs_input_grad({node.tensors_size_});
  writer.write(node.dim);
  writer.write(node.tensors_args_scalartypes);
  writer.write(node.tensors_args_sizes_symint);
  writer.write(node.tensors_size_);
}

static size_t CatBackward0_edge_count(const torch::autograd::Node& base) {
  const auto& node = static_cast<const structs::CatBackward0&>(base);
  return node.tensors_size_;
}

constexpr std::array<Argument, 5> CatBackward0_arguments{{    {"dim", {ElementKind::kInt, Form::kOne}},    {"tensors_args_scalartypes", {ElementKind::kScalarType, Form::kList}},    {"tensors_args_sizes_symint_values", {ElementKind::kSymInt, Form::kList}},    {"tensors_args_sizes_symint_lengths", {ElementKind::kInt, Form::kList}},    {"tensors_size", {ElementKind::kInt, Form::kOne}}}};

constexpr std::array<const char*, 3> CatBackward0_step_operators{"narrow", "slice", "zeros"};

const Binding CatBackward0_binding{
    "CatBackward0",
    "CatBackward0(Tensor?[] grads, bool[1] needs_input_grad, int dim, ScalarType[] tensors_args_scalartypes, SymInt[] tensors_args_sizes_symint_values, int[] tensors_args_sizes_symint_lengths, int tensors_size) -> Tensor[]",
    &typeid(structs::CatBackward0),
    1,
    1,
    true,
    CatBackward0_arguments,
    &CatBackward0_apply_functional_ivalue,
    &CatBackward0_apply_delegate_ivalue,
    &CatBackward0_pack,
    &CatBackward0_edge_count,
    &CatBackward0_step,
    CatBackward0_step_operators};
