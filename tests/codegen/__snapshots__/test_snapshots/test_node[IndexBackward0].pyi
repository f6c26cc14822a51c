class IndexBackward0(FunctionalOperator, Protocol):
    """Backward of index.Tensor as a pure function of gradients and saved values.

    Forward: index.Tensor(Tensor self, Tensor?[] indices) -> Tensor

    Formulas:
      self: index_backward(grad.new_zeros_symint(self.sym_sizes(), self.options()), indices, grad)

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self'
      indices (Tensor?[]): the forward's argument 'indices'
      self_options_dtype (ScalarType?): dtype of 'self.options()' of the forward
      self_options_layout (Layout?): layout of 'self.options()' of the forward
      self_options_device (Device?): device of 'self.options()' of the forward
      self_options_pin_memory (bool?): pin memory of 'self.options()' of the forward
      self_sym_sizes (SymInt[]): 'self.sym_sizes()' of the forward

    Returns:
      The gradient of 'self'; None where it is not wanted or is zero.

    Source: derivatives.yaml:843 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        indices: Sequence[Tensor | None],
        self_options_dtype: torch.dtype | None,
        self_options_layout: torch.layout | None,
        self_options_device: torch.device | None,
        self_options_pin_memory: bool | None,
        self_sym_sizes: Sequence[IntLike],
    ) -> list[Tensor | None]: ...
