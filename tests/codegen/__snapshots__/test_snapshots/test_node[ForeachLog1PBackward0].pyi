class ForeachLog1PBackward0(FunctionalOperator, Protocol):
    """Backward of _foreach_log1p as a pure function of gradients and saved values.

    Forward: _foreach_log1p(Tensor[] self) -> Tensor[]

    Formulas:
      self: log1p_backward(grad, self)

    Args:
      grads: the gradient of each element of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self'
      self (Tensor[]): the forward's argument 'self'
      self_size (int): length of the argument 'self'

    Returns:
      The gradient of each element of 'self'; None where it is not wanted or is zero.

    Source: foreach of the entry at derivatives.yaml:980 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        self: Sequence[Tensor],
        self_size: int,
    ) -> list[Tensor | None]: ...
