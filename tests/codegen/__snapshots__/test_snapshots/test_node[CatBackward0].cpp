// ==== CatBackward0 =========================================================================================
// CatBackward0(Tensor?[] grads, bool[1] needs_input_grad, int dim, ScalarType[] tensors_args_scalartypes, SymInt[] tensors_args_sizes_symint_values, int[] tensors_args_sizes_symint_lengths, int tensors_size) -> Tensor[]
//
// cat(Tensor[] tensors, int dim=0) -> Tensor
//   tensors: cat_tensors_backward(grad, to_args_sizes_symint(tensors), to_args_scalartypes(tensors), dim)
//
// delegate: 'cat_tensors_backward' in the formula of 'tensors' is not exported by torch
#line 1 "CatBackward0 (generated)"
variable_list CatBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
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

variable_list CatBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  ArgumentReader reader("CatBackward0", arguments, 6);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto dim = reader.integer();
  const auto tensors_args_scalartypes = reader.scalar_type_list();
  const auto tensors_args_sizes_symint = reader.sym_int_lists();
  const auto tensors_size = reader.list_size();
  const Preconditions check("CatBackward0");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0]) check.list_length("tensors_args_scalartypes", tensors_args_scalartypes.size(), tensors_size);
  if (needs_input_grad[0]) check.list_length("tensors_args_sizes_symint_lengths", tensors_args_sizes_symint.size(), tensors_size);
  if (needs_input_grad[0]) check.joined_along("dim", dim, tensors_args_sizes_symint);
  return CatBackward0_apply_functional(variable_list(grads), needs_input_grad, dim, tensors_args_scalartypes, tensors_args_sizes_symint, tensors_size);
}

void CatBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::CatBackward0&>(base);
  writer.needs_input_grad({node.tensors_size_});
  writer.integer(node.dim);
  writer.scalar_type_list(node.tensors_args_scalartypes);
  writer.sym_int_lists(node.tensors_args_sizes_symint);
  writer.list_size(node.tensors_size_);
}

constexpr std::array<Argument, 5> CatBackward0_arguments{{    {"dim", ValueKind::Int},    {"tensors_args_scalartypes", ValueKind::ScalarTypeList},    {"tensors_args_sizes_symint_values", ValueKind::SymIntList},    {"tensors_args_sizes_symint_lengths", ValueKind::IntList},    {"tensors_size", ValueKind::Int}}};

const Binding CatBackward0_binding{
    "CatBackward0",
    "CatBackward0(Tensor?[] grads, bool[1] needs_input_grad, int dim, ScalarType[] tensors_args_scalartypes, SymInt[] tensors_args_sizes_symint_values, int[] tensors_args_sizes_symint_lengths, int tensors_size) -> Tensor[]",
    &typeid(structs::CatBackward0),
    1,
    1,
    false,
    CatBackward0_arguments,
    &CatBackward0_apply_functional_ivalue,
    &CatBackward0_apply_functional_ivalue,
    &CatBackward0_pack,
    nullptr,
    {}};
