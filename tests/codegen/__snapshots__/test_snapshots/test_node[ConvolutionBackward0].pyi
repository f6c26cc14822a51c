class ConvolutionBackward0(FunctionalOperator, Protocol):
    """Backward of convolution as a pure function of gradients and saved values.

    Forward: convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor

    Formulas:
      input, weight, bias: grad.defined() ? convolution_backward_symint(grad, input, weight, bias->sym_sizes(), stride, padding, dilation, transposed, output_padding, groups, grad_input_mask) : std::tuple<Tensor, Tensor, Tensor>()

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'input', 'weight', 'bias'
      bias_sym_sizes_opt (SymInt[]?): 'bias.has_value() ? std::optional<c10::SymIntArrayRef>(bias->sym_sizes()) : std::nullopt' of the forward
      dilation (SymInt[]): the forward's argument 'dilation'
      groups (SymInt): the forward's argument 'groups'
      input (Tensor?): the forward's argument 'input'
      output_padding (SymInt[]): the forward's argument 'output_padding'
      padding (SymInt[]): the forward's argument 'padding'
      stride (SymInt[]): the forward's argument 'stride'
      transposed (bool): the forward's argument 'transposed'
      weight (Tensor?): the forward's argument 'weight'

    Returns:
      The gradient of 'input', 'weight', 'bias'; None where it is not wanted or is zero.

    Source: derivatives.yaml:2411 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        bias_sym_sizes_opt: Sequence[IntLike] | None,
        dilation: Sequence[IntLike],
        groups: IntLike,
        input: Tensor | None,
        output_padding: Sequence[IntLike],
        padding: Sequence[IntLike],
        stride: Sequence[IntLike],
        transposed: bool,
        weight: Tensor | None,
    ) -> list[Tensor | None]: ...
