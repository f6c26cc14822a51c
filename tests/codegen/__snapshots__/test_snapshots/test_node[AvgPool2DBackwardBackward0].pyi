class AvgPool2DBackwardBackward0(FunctionalOperator, Protocol):
    """Backward of avg_pool2d_backward as a pure function of gradients and saved values.

    Forward: avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor

    Formulas:
      grad_output: avg_pool2d(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
      self: zeros_like(self)

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'grad_output', 'self'
      ceil_mode (bool): the forward's argument 'ceil_mode'
      count_include_pad (bool): the forward's argument 'count_include_pad'
      divisor_override (int?): the forward's argument 'divisor_override'
      kernel_size (int[]): the forward's argument 'kernel_size'
      padding (int[]): the forward's argument 'padding'
      self_info_sizes (SymInt[]): sizes of 'self' of the forward
      self_info_dtype (ScalarType?): dtype of 'self' of the forward
      self_info_layout (Layout?): layout of 'self' of the forward
      self_info_device (Device?): device of 'self' of the forward
      self_info_pin_memory (bool?): pin memory of 'self' of the forward
      stride (int[]): the forward's argument 'stride'

    Returns:
      The gradient of 'grad_output', 'self'; None where it is not wanted or is zero.

    Source: derivatives.yaml:2489 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
        kernel_size: Sequence[int],
        padding: Sequence[int],
        self_info_sizes: Sequence[IntLike],
        self_info_dtype: torch.dtype | None,
        self_info_layout: torch.layout | None,
        self_info_device: torch.device | None,
        self_info_pin_memory: bool | None,
        stride: Sequence[int],
    ) -> list[Tensor | None]: ...
