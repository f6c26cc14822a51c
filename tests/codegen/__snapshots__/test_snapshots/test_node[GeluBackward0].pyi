class GeluBackward0(FunctionalOperator, Protocol):
    """Backward of gelu as a pure function of gradients and saved values.

    Forward: gelu(Tensor self, *, str approximate='none') -> Tensor

    Formulas:
      self: gelu_backward(grad, self, approximate)

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self'
      approximate (str): the forward's argument 'approximate'
      self (Tensor?): the forward's argument 'self'

    Returns:
      The gradient of 'self'; None where it is not wanted or is zero.

    Source: derivatives.yaml:2147 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        approximate: str,
        self: Tensor | None,
    ) -> list[Tensor | None]: ...
