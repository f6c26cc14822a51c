// ==== ConvolutionBackward0 =================================================================================
// ConvolutionBackward0(Tensor?[] grads, bool[3] needs_input_grad, SymInt[]? bias_sym_sizes_opt, SymInt[] dilation, SymInt groups, Tensor? input, SymInt[] output_padding, SymInt[] padding, SymInt[] stride, bool transposed, Tensor? weight) -> Tensor[]
//
// convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor
//   input, weight, bias: grad.defined() ? convolution_backward_symint(grad, input, weight, bias->sym_sizes(), stride, padding, dilation, transposed, output_padding, groups, grad_input_mask) : std::tuple<Tensor, Tensor, Tensor>()
//
// inline: every name in its formulas links
#line 1 "ConvolutionBackward0 (generated)"
static void ConvolutionBackward0_formulas([[maybe_unused]] std::span<const Tensor> grads, std::span<Tensor> grad_inputs,
    std::array<bool, 3> needs_input_grad,
    [[maybe_unused]] c10::OptionalArray<c10::SymInt> bias_sym_sizes_opt,
    [[maybe_unused]] const std::vector<c10::SymInt>& dilation,
    [[maybe_unused]] const c10::SymInt& groups,
    [[maybe_unused]] const at::Tensor& input,
    [[maybe_unused]] const std::vector<c10::SymInt>& output_padding,
    [[maybe_unused]] const std::vector<c10::SymInt>& padding,
    [[maybe_unused]] const std::vector<c10::SymInt>& stride,
    [[maybe_unused]] bool transposed,
    [[maybe_unused]] const at::Tensor& weight) {
  const auto& grad = grads[0];
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) {
    const std::array<bool, 3> grad_input_mask{needs_input_grad[0], needs_input_grad[1], needs_input_grad[2]};
    auto gradients = (
#line BACKBIND_LINE_ConvolutionBackward0_input_weight_bias BACKBIND_YAML
      grad.defined() ? convolution_backward_symint(grad, input, weight, bias_sym_sizes_opt, stride, padding, dilation, transposed, output_padding, groups, grad_input_mask) : std::tuple<Tensor, Tensor, Tensor>()
#line 1 "ConvolutionBackward0 (generated)"
    );
    if (needs_input_grad[0]) grad_inputs[0] = std::move(std::get<0>(gradients));
    if (needs_input_grad[1]) grad_inputs[1] = std::move(std::get<1>(gradients));
    if (needs_input_grad[2]) grad_inputs[2] = std::move(std::get<2>(gradients));
  }
}

variable_list ConvolutionBackward0_apply_functional(variable_list&& grads, std::array<bool, 3> needs_input_grad,
    c10::OptionalArray<c10::SymInt> bias_sym_sizes_opt,
    const std::vector<c10::SymInt>& dilation,
    const c10::SymInt& groups,
    const at::Tensor& input,
    const std::vector<c10::SymInt>& output_padding,
    const std::vector<c10::SymInt>& padding,
    const std::vector<c10::SymInt>& stride,
    bool transposed,
    const at::Tensor& weight) {
  variable_list grad_inputs(3);
  ConvolutionBackward0_formulas(grads, grad_inputs, needs_input_grad, bias_sym_sizes_opt, dilation, groups, input, output_padding, padding, stride, transposed, weight);
  return grad_inputs;
}

bool ConvolutionBackward0_step(torch::autograd::Node& base, const StepFrame& frame) {
  [[maybe_unused]] auto& node = static_cast<structs::ConvolutionBackward0&>(base);
  const torch_private::NodeLock lock(base);
  const Tensor* input = torch_private::saved_tensor(node.input_);
  const Tensor* weight = torch_private::saved_tensor(node.weight_);
  if (!are_plain_dense({input, weight})) return false;
  const BelowADInplaceOrView keys(frame);
  const StepScope scope(keys.leave_out_autograd());
  ConvolutionBackward0_formulas(frame.gradients, frame.results, {frame.needs_input_grad[0] != 0, frame.needs_input_grad[1] != 0, frame.needs_input_grad[2] != 0}, node.bias_sym_sizes_opt, node.dilation, node.groups, *input, node.output_padding, node.padding, node.stride, node.transposed, *weight);
  return true;
}

variable_list ConvolutionBackward0_apply_delegate(variable_list&& grads, std::array<bool, 3> needs_input_grad,
    c10::OptionalArray<c10::SymInt> bias_sym_sizes_opt,
    const std::vector<c10::SymInt>& dilation,
    const c10::SymInt& groups,
    const at::Tensor& input,
    const std::vector<c10::SymInt>& output_padding,
    const std::vector<c10::SymInt>& padding,
    const std::vector<c10::SymInt>& stride,
    bool transposed,
    const at::Tensor& weight) {
  DelegateEdges edges(3);
  edges.add(needs_input_grad[0]);
  edges.add(needs_input_grad[1]);
  edges.add(needs_input_grad[2]);
  const DelegateOwner owner(make_delegate<structs::ConvolutionBackward0>(std::move(edges)));
  auto* node = static_cast<structs::ConvolutionBackward0*>(&owner.node());
  {
    FieldFiller fill;
    fill(node->input_, input);
    fill(node->weight_, weight);
  }
  node->bias_sym_sizes_opt = bias_sym_sizes_opt;
  node->dilation = dilation;
  node->groups = groups;
  node->output_padding = output_padding;
  node->padding = padding;
  node->stride = stride;
  node->transposed = transposed;
  return node->apply(std::move(grads));
}

static variable_list ConvolutionBackward0_call(decltype(&ConvolutionBackward0_apply_delegate) functional, const variable_list& grads,
    const ivalue_list& arguments) {
  ArgumentReader reader("ConvolutionBackward0", arguments, 10);
  const auto needs_input_grad = reader.needs_input_grad<3>();
  const auto bias_sym_sizes_opt = reader.read<c10::OptionalArray<c10::SymInt>>();
  const auto dilation = reader.read<std::vector<c10::SymInt>>();
  const auto groups = reader.read<c10::SymInt>();
  const auto input = reader.read<at::Tensor>();
  const auto output_padding = reader.read<std::vector<c10::SymInt>>();
  const auto padding = reader.read<std::vector<c10::SymInt>>();
  const auto stride = reader.read<std::vector<c10::SymInt>>();
  const auto transposed = reader.read<bool>();
  const auto weight = reader.read<at::Tensor>();
  const Preconditions check("ConvolutionBackward0");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) check.positive("groups", groups);
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) check.defined(grads, {"input", input});
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) check.defined(grads, {"weight", weight});
  if (needs_input_grad[0] || needs_input_grad[1] || needs_input_grad[2]) check.convolution({"grads", grads[0]}, {"input", input}, {"weight", weight}, stride, padding, dilation, transposed, output_padding, groups);
  return functional(variable_list(grads), needs_input_grad, bias_sym_sizes_opt, dilation, groups, input, output_padding, padding, stride, transposed, weight);
}

variable_list ConvolutionBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return ConvolutionBackward0_call(&ConvolutionBackward0_apply_functional, grads, arguments);
}

variable_list ConvolutionBackward0_apply_delegate_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  return ConvolutionBackward0_call(&ConvolutionBackward0_apply_delegate, grads, arguments);
}

void ConvolutionBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::ConvolutionBackward0&>(base);
  writer.needs_input_grad({1, 1, 1});
  writer.write(node.bias_sym_sizes_opt);
  writer.write(node.dilation);
  writer.write(node.groups);
  writer.write(node.input_);
  writer.write(node.output_padding);
  writer.write(node.padding);
  writer.write(node.stride);
  writer.write(node.transposed);
  writer.write(node.weight_);
}

constexpr std::array<Argument, 9> ConvolutionBackward0_arguments{{    {"bias_sym_sizes_opt", {ElementKind::kSymInt, Form::kOptionalList}},    {"dilation", {ElementKind::kSymInt, Form::kList}},    {"groups", {ElementKind::kSymInt, Form::kOne}},    {"input", {ElementKind::kTensor, Form::kOptional}},    {"output_padding", {ElementKind::kSymInt, Form::kList}},    {"padding", {ElementKind::kSymInt, Form::kList}},    {"stride", {ElementKind::kSymInt, Form::kList}},    {"transposed", {ElementKind::kBool, Form::kOne}},    {"weight", {ElementKind::kTensor, Form::kOptional}}}};

constexpr std::array<const char*, 1> ConvolutionBackward0_step_operators{"convolution_backward"};

const Binding ConvolutionBackward0_binding{
    "ConvolutionBackward0",
    "ConvolutionBackward0(Tensor?[] grads, bool[3] needs_input_grad, SymInt[]? bias_sym_sizes_opt, SymInt[] dilation, SymInt groups, Tensor? input, SymInt[] output_padding, SymInt[] padding, SymInt[] stride, bool transposed, Tensor? weight) -> Tensor[]",
    &typeid(structs::ConvolutionBackward0),
    3,
    1,
    true,
    ConvolutionBackward0_arguments,
    &ConvolutionBackward0_apply_functional_ivalue,
    &ConvolutionBackward0_apply_delegate_ivalue,
    &ConvolutionBackward0_pack,
    nullptr,
    &ConvolutionBackward0_step,
    ConvolutionBackward0_step_operators};
