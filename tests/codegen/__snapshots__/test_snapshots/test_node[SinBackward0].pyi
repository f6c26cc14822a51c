class SinBackward0(FunctionalOperator, Protocol):
    """Backward of sin as a pure function of gradients and saved values.

    Forward: sin(Tensor self) -> Tensor

    Formulas:
      self: grad * self.cos().conj()

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self'
      self (Tensor?): the forward's argument 'self'

    Returns:
      The gradient of 'self'; None where it is not wanted or is zero.

    Source: derivatives.yaml:1556 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        self: Tensor | None,
    ) -> list[Tensor | None]: ...
