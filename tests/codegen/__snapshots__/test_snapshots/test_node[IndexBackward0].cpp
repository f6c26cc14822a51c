// ==== IndexBackward0 =======================================================================================
// IndexBackward0(Tensor?[] grads, bool[1] needs_input_grad, Tensor?[] indices, ScalarType? self_options_dtype, Layout? self_options_layout, Device? self_options_device, bool? self_options_pin_memory, SymInt[] self_sym_sizes) -> Tensor[]
//
// index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
//   self: index_backward(grad.new_zeros_symint(self.sym_sizes(), self.options()), indices, grad)
//
// inline: every name in its formulas links
#line 1 "IndexBackward0 (generated)"
static void IndexBackward0_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 1> needs_input_grad,
    [[maybe_unused]] const c10::List<std::optional<at::Tensor>>& indices,
    [[maybe_unused]] const at::TensorOptions& self_options,
    [[maybe_unused]] const std::vector<c10::SymInt>& self_sym_sizes) {
  const auto& grad = grads[0];
  const bool any_grad_defined = any_defined(grads);
  if (needs_input_grad[0]) {
    if (any_grad_defined) grad_inputs[0] = (
#line BACKBIND_LINE_IndexBackward0_self BACKBIND_YAML
      index_backward(grad.new_zeros_symint(self_sym_sizes, self_options), indices, grad)
#line 1 "IndexBackward0 (generated)"
    );
  }
}

variable_list IndexBackward0_apply_functional(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const c10::List<std::optional<at::Tensor>>& indices,
    const at::TensorOptions& self_options,
    const std::vector<c10::SymInt>& self_sym_sizes) {
  variable_list grad_inputs(1);
  IndexBackward0_formulas(grads, grad_inputs, needs_input_grad, indices, self_options, self_sym_sizes);
  return grad_inputs;
}

bool IndexBackward0_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::IndexBackward0&>(base);
  const torch_private::NodeLock lock(base);
  const auto indices = saved_list<c10::List<std::optional<at::Tensor>>>(node.indices_, node.indices_released_);
  if (!indices) return false;
  const AllKeys keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  IndexBackward0_formulas(frame.gradients, frame.results, {frame.needs_input_grad[0] != 0}, *indices, node.self_options, node.self_sym_sizes);
  return true;
}

variable_list IndexBackward0_apply_delegate(variable_list&& grads, std::array<bool, 1> needs_input_grad,
    const c10::List<std::optional<at::Tensor>>& indices,
    const at::TensorOptions& self_options,
    const std::vector<c10::SymInt>& self_sym_sizes) {
  DelegateEdges edges(1);
  edges.add(needs_input_grad[0]);
  const DelegateOwner owner(make_delegate<structs::IndexBackward0>(std::move(edges)));
  auto* node = static_cast<structs::IndexBackward0*>(&owner.node());
  {
    FieldFiller fill;
    fill(node->indices_, indices);
  }
  node->self_options = self_options;
  node->self_sym_sizes = self_sym_sizes;
  return node->apply(std::move(grads));
}

static variable_list IndexBackward0_call(decltype(&IndexBackward0_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("IndexBackward0", arguments, 7);
  const auto needs_input_grad = reader.needs_input_grad<1>();
  const auto indices = reader.read<c10::List<std::optional<at::Tensor>>>();
  const auto self_options = reader.read<at::TensorOptions>();
  const auto self_sym_sizes = reader.read<std::vector<c10::SymInt>>();
  const Preconditions check("IndexBackward0");
  check.gradient_count(grads, 1);
  return functional(variable_list(grads), needs_input_grad, indices, self_options, self_sym_sizes);
}

variable_list IndexBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return IndexBackward0_call(&IndexBackward0_apply_functional, grads, arguments);
}

variable_list IndexBackward0_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return IndexBackward0_call(&IndexBackward0_apply_delegate, grads, arguments);
}

void IndexBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::IndexBackward0&>(base);
  writer.needs_input_grad({1});
  writer.write_optional_list(node.indices_, node.indices_released_);
  writer.write(node.self_options);
  writer.write(node.self_sym_sizes);
}

constexpr std::array<Argument, 6> IndexBackward0_arguments{{    {"indices", {ElementKind::kTensor, Form::kListOfOptional}},    {"self_options_dtype", {ElementKind::kScalarType, Form::kOptional}},    {"self_options_layout", {ElementKind::kLayout, Form::kOptional}},    {"self_options_device", {ElementKind::kDevice, Form::kOptional}},    {"self_options_pin_memory", {ElementKind::kBool, Form::kOptional}},    {"self_sym_sizes", {ElementKind::kSymInt, Form::kList}}}};

const Binding IndexBackward0_binding{
    "IndexBackward0",
    "IndexBackward0(Tensor?[] grads, bool[1] needs_input_grad, Tensor?[] indices, ScalarType? self_options_dtype, Layout? self_options_layout, Device? self_options_device, bool? self_options_pin_memory, SymInt[] self_sym_sizes) -> Tensor[]",
    &typeid(structs::IndexBackward0),
    1,
    1,
    true,
    IndexBackward0_arguments,
    &IndexBackward0_apply_functional_ivalue,
    &IndexBackward0_apply_delegate_ivalue,
    &IndexBackward0_pack,
    nullptr,
    &IndexBackward0_step,
    {}};
