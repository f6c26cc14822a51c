// ==== AvgPool2DBackwardBackward0 ===========================================================================
// AvgPool2DBackwardBackward0(Tensor?[] grads, bool[2] needs_input_grad, bool ceil_mode, bool count_include_pad, int? divisor_override, int[] kernel_size, int[] padding, SymInt[] self_info_sizes, ScalarType? self_info_dtype, Layout? self_info_layout, Device? self_info_device, bool? self_info_pin_memory, int[] stride) -> Tensor[]
//
// avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor
//   grad_output: avg_pool2d(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
//   self: zeros_like(self)
//
// delegate: 'TypeAndSize::zeros' in the formula of 'self' is not exported by torch
#line 1 "AvgPool2DBackwardBackward0 (generated)"
variable_list AvgPool2DBackwardBackward0_apply_functional(variable_list&& grads, std::array<bool, 2> needs_input_grad,
    bool ceil_mode,
    bool count_include_pad,
    std::optional<int64_t> divisor_override,
    const std::vector<int64_t>& kernel_size,
    const std::vector<int64_t>& padding,
    const torch::autograd::TypeAndSize& self_info,
    const std::vector<int64_t>& stride) {
  DelegateEdges edges(2);
  edges.add(needs_input_grad[0]);
  edges.add(needs_input_grad[1]);
  const DelegateOwner owner(make_delegate<structs::AvgPool2DBackwardBackward0>(std::move(edges)));
  auto* node = static_cast<structs::AvgPool2DBackwardBackward0*>(&owner.node());
  node->ceil_mode = ceil_mode;
  node->count_include_pad = count_include_pad;
  node->divisor_override = divisor_override;
  node->kernel_size = kernel_size;
  node->padding = padding;
  node->self_info = self_info;
  node->stride = stride;
  return node->apply(std::move(grads));
}

variable_list AvgPool2DBackwardBackward0_apply_functional_ivalue(const variable_list& grads, const ivalue_list& arguments) {
  ArgumentReader reader("AvgPool2DBackwardBackward0", arguments, 12);
  const auto needs_input_grad = reader.needs_input_grad<2>();
  const auto ceil_mode = reader.read<bool>();
  const auto count_include_pad = reader.read<bool>();
  const auto divisor_override = reader.read<std::optional<int64_t>>();
  const auto kernel_size = reader.read<std::vector<int64_t>>();
  const auto padding = reader.read<std::vector<int64_t>>();
  const auto self_info = reader.read<torch::autograd::TypeAndSize>();
  const auto stride = reader.read<std::vector<int64_t>>();
  const Preconditions check("AvgPool2DBackwardBackward0");
  check.gradient_count(grads, 1);
  if (needs_input_grad[0]) check.fixed_length("kernel_size", kernel_size.size(), 2, true, false);
  if (needs_input_grad[0]) check.fixed_length("padding", padding.size(), 2, true, false);
  if (needs_input_grad[0]) check.fixed_length("stride", stride.size(), 2, true, true);
  return AvgPool2DBackwardBackward0_apply_functional(variable_list(grads), needs_input_grad, ceil_mode, count_include_pad, divisor_override, kernel_size, padding, self_info, stride);
}

void AvgPool2DBackwardBackward0_pack([[maybe_unused]] torch::autograd::Node& base, PackWriter& writer) {
  [[maybe_unused]] const auto& node = static_cast<structs::AvgPool2DBackwardBackward0&>(base);
  writer.needs_input_grad({1, 1});
  writer.write(node.ceil_mode);
  writer.write(node.count_include_pad);
  writer.write(node.divisor_override);
  writer.write(node.kernel_size);
  writer.write(node.padding);
  writer.write(node.self_info);
  writer.write(node.stride);
}

constexpr std::array<Argument, 11> AvgPool2DBackwardBackward0_arguments{{    {"ceil_mode", {ElementKind::kBool, Form::kOne}},    {"count_include_pad", {ElementKind::kBool, Form::kOne}},    {"divisor_override", {ElementKind::kInt, Form::kOptional}},    {"kernel_size", {ElementKind::kInt, Form::kList}},    {"padding", {ElementKind::kInt, Form::kList}},    {"self_info_sizes", {ElementKind::kSymInt, Form::kList}},    {"self_info_dtype", {ElementKind::kScalarType, Form::kOptional}},    {"self_info_layout", {ElementKind::kLayout, Form::kOptional}},    {"self_info_device", {ElementKind::kDevice, Form::kOptional}},    {"self_info_pin_memory", {ElementKind::kBool, Form::kOptional}},    {"stride", {ElementKind::kInt, Form::kList}}}};

const Binding AvgPool2DBackwardBackward0_binding{
    "AvgPool2DBackwardBackward0",
    "AvgPool2DBackwardBackward0(Tensor?[] grads, bool[2] needs_input_grad, bool ceil_mode, bool count_include_pad, int? divisor_override, int[] kernel_size, int[] padding, SymInt[] self_info_sizes, ScalarType? self_info_dtype, Layout? self_info_layout, Device? self_info_device, bool? self_info_pin_memory, int[] stride) -> Tensor[]",
    &typeid(structs::AvgPool2DBackwardBackward0),
    2,
    1,
    false,
    AvgPool2DBackwardBackward0_arguments,
    &AvgPool2DBackwardBackward0_apply_functional_ivalue,
    &AvgPool2DBackwardBackward0_apply_functional_ivalue,
    &AvgPool2DBackwardBackward0_pack,
    nullptr,
    nullptr,
    {}};
