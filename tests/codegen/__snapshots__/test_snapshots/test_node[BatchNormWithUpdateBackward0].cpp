// ==== BatchNormWithUpdateBackward0 =========================================================================
// BatchNormWithUpdateBackward0(Tensor?[] grads, bool[3] needs_input_grad, float eps, Tensor? input, Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? result1, Tensor? result2, Tensor? result3) -> Tensor[]
//
// _batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)
//   input, weight, bias: grad.defined() ? batch_norm_backward(grad, input, weight, running_mean, running_var, result1, result2, /*update*/true, eps, grad_input_mask, retain_variables ? result3.clone() : result3) : std::tuple<Tensor, Tensor, Tensor>()
//
// inline: every name in its formulas links
#line 1 "BatchNormWithUpdateBackward0 (generated)"
static void BatchNormWithUpdateBackward0_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 3> needs_input_grad,
    [[maybe_unused]] double eps,
    [[maybe_unused]] const at::Tensor& input,
    [[maybe_unused]] const at::Tensor& running_mean,
    [[maybe_unused]] const at::Tensor& running_var,
    [[maybe_unused]] const at::Tensor& weight,
    [[maybe_unused]] const at::Tensor& result1,
    [[maybe_unused]] const at::Tensor& result2,
    [[maybe_unused]] const at::Tensor& result3) {
  const auto& grad = grads[0];
  constexpr bool retain_variables = true;
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) {
    const std::array<bool, 3> grad_input_mask{needs_input_grad[0], needs_input_grad[1], needs_input_grad[2]};
    auto gradients = (
#line BACKBIND_LINE_BatchNormWithUpdateBackward0_input_weight_bias BACKBIND_YAML
      grad.defined() ? batch_norm_backward(grad, input, weight, running_mean, running_var, result1, result2, /*update*/true, eps, grad_input_mask, retain_variables ? result3.clone() : result3) : std::tuple<Tensor, Tensor, Tensor>()
#line 1 "BatchNormWithUpdateBackward0 (generated)"
    );
    if (needs_input_grad[0]) grad_inputs[0] = std::move(std::get<0>(gradients));
    if (needs_input_grad[1]) grad_inputs[1] = std::move(std::get<1>(gradients));
    if (needs_input_grad[2]) grad_inputs[2] = std::move(std::get<2>(gradients));
  }
}

variable_list BatchNormWithUpdateBackward0_apply_functional(variable_list&& grads, std::array<bool, 3> needs_input_grad,
    double eps,
    const at::Tensor& input,
    const at::Tensor& running_mean,
    const at::Tensor& running_var,
    const at::Tensor& weight,
    const at::Tensor& result1,
    const at::Tensor& result2,
    const at::Tensor& result3) {
  variable_list grad_inputs(3);
  BatchNormWithUpdateBackward0_formulas(grads, grad_inputs, needs_input_grad, eps, input, running_mean, running_var, weight, result1, result2, result3);
  return grad_inputs;
}

bool BatchNormWithUpdateBackward0_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::BatchNormWithUpdateBackward0&>(base);
  const torch_private::NodeLock lock(base);
  const Tensor* input = torch_private::saved_tensor(node.input_);
  const Tensor* running_mean = torch_private::saved_tensor(node.running_mean_);
  const Tensor* running_var = torch_private::saved_tensor(node.running_var_);
  const Tensor* weight = torch_private::saved_tensor(node.weight_);
  const Tensor* result1 = torch_private::saved_tensor(node.result1_);
  const Tensor* result2 = torch_private::saved_tensor(node.result2_);
  const Tensor* result3 = torch_private::saved_tensor(node.result3_);
  if (!are_plain_dense({input, running_mean, running_var, weight, result1, result2, result3})) return false;
  const BelowADInplaceOrView keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  BatchNormWithUpdateBackward0_formulas(frame.gradients, frame.results, {frame.needs_input_grad[0] != 0, frame.needs_input_grad[1] != 0, frame.needs_input_grad[2] != 0}, node.eps, *input, *running_mean, *running_var, *weight, *result1, *result2, *result3);
  return true;
}

variable_list BatchNormWithUpdateBackward0_apply_delegate(variable_list&& grads, std::array<bool, 3> needs_input_grad,
    double eps,
    const at::Tensor& input,
    const at::Tensor& running_mean,
    const at::Tensor& running_var,
    const at::Tensor& weight,
    const at::Tensor& result1,
    const at::Tensor& result2,
    const at::Tensor& result3) {
  DelegateEdges edges(3);
  edges.add(needs_input_grad[0]);
  edges.add(needs_input_grad[1]);
  edges.add(needs_input_grad[2]);
  const DelegateOwner owner(make_delegate<structs::BatchNormWithUpdateBackward0>(std::move(edges)));
  auto* node = static_cast<structs::BatchNormWithUpdateBackward0*>(&owner.node());
  {
    FieldFiller fill;
    fill(node->input_, input);
    fill(node->running_mean_, running_mean);
    fill(node->running_var_, running_var);
    fill(node->weight_, weight);
    fill(node->result1_, result1);
    fill(node->result2_, result2);
    fill(node->result3_, result3);
  }
  node->eps = eps;
  return node->apply(std::move(grads));
}

static variable_list BatchNormWithUpdateBackward0_call(decltype(&BatchNormWithUpdateBackward0_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("BatchNormWithUpdateBackward0", arguments, 9);
  const auto needs_input_grad = reader.needs_input_grad<3>();
  const auto eps = reader.read<double>();
  const auto input = reader.read<at::Tensor>();
  const auto running_mean = reader.read<at::Tensor>();
  const auto running_var = reader.read<at::Tensor>();
  const auto weight = reader.read<at::Tensor>();
  const auto result1 = reader.read<at::Tensor>();
  const auto result2 = reader.read<at::Tensor>();
  const auto result3 = reader.read<at::Tensor>();
  const Preconditions check("BatchNormWithUpdateBackward0");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) check.defined(grads, {"input", input});
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) check.defined(grads, {"running_mean", running_mean});
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) check.defined(grads, {"running_var", running_var});
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) check.defined(grads, {"result1", result1});
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) check.defined(grads, {"result2", result2});
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) check.defined(grads, {"result3", result3});
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) check.batch_norm(grads, true, {"input", input}, {{"weight", weight}}, {{"result1", result1}, {"result2", result2}}, {{"running_mean", running_mean}, {"running_var", running_var}});
  return functional(variable_list(grads), needs_input_grad, eps, input, running_mean, running_var, weight, result1, result2, result3);
}

variable_list BatchNormWithUpdateBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return BatchNormWithUpdateBackward0_call(&BatchNormWithUpdateBackward0_apply_functional, grads, arguments);
}

variable_list BatchNormWithUpdateBackward0_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return BatchNormWithUpdateBackward0_call(&BatchNormWithUpdateBackward0_apply_delegate, grads, arguments);
}

void BatchNormWithUpdateBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::BatchNormWithUpdateBackward0&>(base);
  writer.needs_input_grad({1, 1, 1});
  writer.write(node.eps);
  writer.write(node.input_);
  writer.write(node.running_mean_);
  writer.write(node.running_var_);
  writer.write(node.weight_);
  writer.write(node.result1_);
  writer.write(node.result2_);
  writer.write(node.result3_);
}

constexpr std::array<Argument, 8> BatchNormWithUpdateBackward0_arguments{{    {"eps", {ElementKind::kFloat, Form::kOne}},    {"input", {ElementKind::kTensor, Form::kOptional}},    {"running_mean", {ElementKind::kTensor, Form::kOptional}},    {"running_var", {ElementKind::kTensor, Form::kOptional}},    {"weight", {ElementKind::kTensor, Form::kOptional}},    {"result1", {ElementKind::kTensor, Form::kOptional}},    {"result2", {ElementKind::kTensor, Form::kOptional}},    {"result3", {ElementKind::kTensor, Form::kOptional}}}};

constexpr std::array<const char*, 2> BatchNormWithUpdateBackward0_step_operators{"batch_norm_backward", "clone"};

const Binding BatchNormWithUpdateBackward0_binding{
    "BatchNormWithUpdateBackward0",
    "BatchNormWithUpdateBackward0(Tensor?[] grads, bool[3] needs_input_grad, float eps, Tensor? input, Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? result1, Tensor? result2, Tensor? result3) -> Tensor[]",
    &typeid(structs::BatchNormWithUpdateBackward0),
    3,
    1,
    true,
    BatchNormWithUpdateBackward0_arguments,
    &BatchNormWithUpdateBackward0_apply_functional_ivalue,
    &BatchNormWithUpdateBackward0_apply_delegate_ivalue,
    &BatchNormWithUpdateBackward0_pack,
    nullptr,
    &BatchNormWithUpdateBackward0_step,
    BatchNormWithUpdateBackward0_step_operators};
