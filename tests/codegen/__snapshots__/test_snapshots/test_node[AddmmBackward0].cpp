// ==== AddmmBackward0 =======================================================================================
// AddmmBackward0(Tensor?[] grads, bool[3] needs_input_grad, Scalar alpha, Scalar beta, Tensor? mat1, Layout mat1_layout, SymInt[] mat1_sym_sizes, SymInt[] mat1_sym_strides, Tensor? mat2, Layout mat2_layout, SymInt[] mat2_sym_sizes, SymInt[] mat2_sym_strides) -> Tensor[]
//
// addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
//   self: maybe_multiply(grad, beta.conj())
//   mat1: mm_mat1_backward(grad, mat2, mat1.sym_sizes(), mat1.sym_strides(), mat1.layout(), alpha)
//   mat2: mm_mat2_backward(grad, mat1, mat2.sym_sizes(), mat2.sym_strides(), mat2.layout(), alpha)
//
// inline: every name in its formulas links
#line 1 "AddmmBackward0 (generated)"
static void AddmmBackward0_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 3> needs_input_grad,
    [[maybe_unused]] const at::Scalar& alpha,
    [[maybe_unused]] const at::Scalar& beta,
    [[maybe_unused]] const at::Tensor& mat1,
    [[maybe_unused]] at::Layout mat1_layout,
    [[maybe_unused]] const std::vector<c10::SymInt>& mat1_sym_sizes,
    [[maybe_unused]] const std::vector<c10::SymInt>& mat1_sym_strides,
    [[maybe_unused]] const at::Tensor& mat2,
    [[maybe_unused]] at::Layout mat2_layout,
    [[maybe_unused]] const std::vector<c10::SymInt>& mat2_sym_sizes,
    [[maybe_unused]] const std::vector<c10::SymInt>& mat2_sym_strides) {
  const auto& grad = grads[0];
  const bool any_grad_defined = any_defined(grads);
  if (needs_input_grad[1]) {
    if (any_grad_defined) grad_inputs[1] = (
#line BACKBIND_LINE_AddmmBackward0_mat1 BACKBIND_YAML
      mm_mat1_backward(grad, mat2, mat1_sym_sizes, mat1_sym_strides, mat1_layout, alpha)
#line 1 "AddmmBackward0 (generated)"
    );
  }
  if (needs_input_grad[2]) {
    if (any_grad_defined) grad_inputs[2] = (
#line BACKBIND_LINE_AddmmBackward0_mat2 BACKBIND_YAML
      mm_mat2_backward(grad, mat1, mat2_sym_sizes, mat2_sym_strides, mat2_layout, alpha)
#line 1 "AddmmBackward0 (generated)"
    );
  }
  if (needs_input_grad[0]) {
    if (any_grad_defined) grad_inputs[0] = (
#line BACKBIND_LINE_AddmmBackward0_self BACKBIND_YAML
      maybe_multiply(grad, beta.conj())
#line 1 "AddmmBackward0 (generated)"
    );
  }
}

variable_list AddmmBackward0_apply_functional(variable_list&& grads, std::array<bool, 3> needs_input_grad,
    const at::Scalar& alpha,
    const at::Scalar& beta,
    const at::Tensor& mat1,
    at::Layout mat1_layout,
    const std::vector<c10::SymInt>& mat1_sym_sizes,
    const std::vector<c10::SymInt>& mat1_sym_strides,
    const at::Tensor& mat2,
    at::Layout mat2_layout,
    const std::vector<c10::SymInt>& mat2_sym_sizes,
    const std::vector<c10::SymInt>& mat2_sym_strides) {
  variable_list grad_inputs(3);
  AddmmBackward0_formulas(grads, grad_inputs, needs_input_grad, alpha, beta, mat1, mat1_layout, mat1_sym_sizes, mat1_sym_strides, mat2, mat2_layout, mat2_sym_sizes, mat2_sym_strides);
  return grad_inputs;
}

bool AddmmBackward0_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::AddmmBackward0&>(base);
  const torch_private::NodeLock lock(base);
  const Tensor* mat1 = torch_private::saved_tensor(node.mat1_);
  const Tensor* mat2 = torch_private::saved_tensor(node.mat2_);
  if (!are_plain_dense({mat1, mat2})) return false;
  const BelowAutograd keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  AddmmBackward0_formulas(frame.gradients, frame.results, {frame.needs_input_grad[0] != 0, frame.needs_input_grad[1] != 0, frame.needs_input_grad[2] != 0}, node.alpha, node.beta, *mat1, node.mat1_layout, node.mat1_sym_sizes, node.mat1_sym_strides, *mat2, node.mat2_layout, node.mat2_sym_sizes, node.mat2_sym_strides);
  return true;
}

variable_list AddmmBackward0_apply_delegate(variable_list&& grads, std::array<bool, 3> needs_input_grad,
    const at::Scalar& alpha,
    const at::Scalar& beta,
    const at::Tensor& mat1,
    at::Layout mat1_layout,
    const std::vector<c10::SymInt>& mat1_sym_sizes,
    const std::vector<c10::SymInt>& mat1_sym_strides,
    const at::Tensor& mat2,
    at::Layout mat2_layout,
    const std::vector<c10::SymInt>& mat2_sym_sizes,
    const std::vector<c10::SymInt>& mat2_sym_strides) {
  DelegateEdges edges(3);
  edges.add(needs_input_grad[0]);
  edges.add(needs_input_grad[1]);
  edges.add(needs_input_grad[2]);
  const DelegateOwner owner(make_delegate<structs::AddmmBackward0>(std::move(edges)));
  auto* node = static_cast<structs::AddmmBackward0*>(&owner.node());
  {
    FieldFiller fill;
    fill(node->mat1_, mat1);
    fill(node->mat2_, mat2);
  }
  node->alpha = alpha;
  node->beta = beta;
  node->mat1_layout = mat1_layout;
  node->mat1_sym_sizes = mat1_sym_sizes;
  node->mat1_sym_strides = mat1_sym_strides;
  node->mat2_layout = mat2_layout;
  node->mat2_sym_sizes = mat2_sym_sizes;
  node->mat2_sym_strides = mat2_sym_strides;
  return node->apply(std::move(grads));
}

static variable_list AddmmBackward0_call(decltype(&AddmmBackward0_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("AddmmBackward0", arguments, 11);
  const auto needs_input_grad = reader.needs_input_grad<3>();
  const auto alpha = reader.read<at::Scalar>();
  const auto beta = reader.read<at::Scalar>();
  const auto mat1 = reader.read<at::Tensor>();
  const auto mat1_layout = reader.read<at::Layout>();
  const auto mat1_sym_sizes = reader.read<std::vector<c10::SymInt>>();
  const auto mat1_sym_strides = reader.read<std::vector<c10::SymInt>>();
  const auto mat2 = reader.read<at::Tensor>();
  const auto mat2_layout = reader.read<at::Layout>();
  const auto mat2_sym_sizes = reader.read<std::vector<c10::SymInt>>();
  const auto mat2_sym_strides = reader.read<std::vector<c10::SymInt>>();
  const Preconditions check("AddmmBackward0");
  check.gradient_count(grads, 1);
  if (needs_input_grad[1]) check.strides("mat1_sym_sizes", mat1_sym_sizes.size(), "mat1_sym_strides", mat1_sym_strides.size(), mat1_layout);
  if (needs_input_grad[2]) check.strides("mat2_sym_sizes", mat2_sym_sizes.size(), "mat2_sym_strides", mat2_sym_strides.size(), mat2_layout);
  if (needs_input_grad[2]) check.defined(grads, {"mat1", mat1});
  if (needs_input_grad[1]) check.defined(grads, {"mat2", mat2});
  if (needs_input_grad[1]) check.length_at_least("mat1_sym_sizes", mat1_sym_sizes.size(), 2);
  if (needs_input_grad[2]) check.length_at_least("mat2_sym_sizes", mat2_sym_sizes.size(), 2);
  return functional(variable_list(grads), needs_input_grad, alpha, beta, mat1, mat1_layout, mat1_sym_sizes, mat1_sym_strides, mat2, mat2_layout, mat2_sym_sizes, mat2_sym_strides);
}

variable_list AddmmBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return AddmmBackward0_call(&AddmmBackward0_apply_functional, grads, arguments);
}

variable_list AddmmBackward0_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return AddmmBackward0_call(&AddmmBackward0_apply_delegate, grads, arguments);
}

void AddmmBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::AddmmBackward0&>(base);
  writer.needs_input_grad({1, 1, 1});
  writer.write(node.alpha);
  writer.write(node.beta);
  writer.write(node.mat1_);
  writer.write(node.mat1_layout);
  writer.write(node.mat1_sym_sizes);
  writer.write(node.mat1_sym_strides);
  writer.write(node.mat2_);
  writer.write(node.mat2_layout);
  writer.write(node.mat2_sym_sizes);
  writer.write(node.mat2_sym_strides);
}

constexpr std::array<Argument, 10> AddmmBackward0_arguments{{    {"alpha", {ElementKind::kScalar, Form::kOne}},    {"beta", {ElementKind::kScalar, Form::kOne}},    {"mat1", {ElementKind::kTensor, Form::kOptional}},    {"mat1_layout", {ElementKind::kLayout, Form::kOne}},    {"mat1_sym_sizes", {ElementKind::kSymInt, Form::kList}},    {"mat1_sym_strides", {ElementKind::kSymInt, Form::kList}},    {"mat2", {ElementKind::kTensor, Form::kOptional}},    {"mat2_layout", {ElementKind::kLayout, Form::kOne}},    {"mat2_sym_sizes", {ElementKind::kSymInt, Form::kList}},    {"mat2_sym_strides", {ElementKind::kSymInt, Form::kList}}}};

constexpr std::array<const char*, 5> AddmmBackward0_step_operators{"conj", "mm", "mul", "t", "transpose"};

const Binding AddmmBackward0_binding{
    "AddmmBackward0",
    "AddmmBackward0(Tensor?[] grads, bool[3] needs_input_grad, Scalar alpha, Scalar beta, Tensor? mat1, Layout mat1_layout, SymInt[] mat1_sym_sizes, SymInt[] mat1_sym_strides, Tensor? mat2, Layout mat2_layout, SymInt[] mat2_sym_sizes, SymInt[] mat2_sym_strides) -> Tensor[]",
    &typeid(structs::AddmmBackward0),
    3,
    1,
    true,
    AddmmBackward0_arguments,
    &AddmmBackward0_apply_functional_ivalue,
    &AddmmBackward0_apply_delegate_ivalue,
    &AddmmBackward0_pack,
    nullptr,
    &AddmmBackward0_step,
    AddmmBackward0_step_operators};
