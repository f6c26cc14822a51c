class DivBackward2(FunctionalOperator, Protocol):
    """Backward of div.Tensor_mode as a pure function of gradients and saved values.

    Forward: div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor

    Formulas:
      self: div_tensor_self_backward(grad, other, self.scalar_type(), rounding_mode)
      other: div_tensor_other_backward(grad, self, other, rounding_mode)

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self', 'other'
      other (Tensor?): the forward's argument 'other'
      rounding_mode (str?): the forward's argument 'rounding_mode'
      self (Tensor?): the forward's argument 'self'
      self_scalar_type (ScalarType): 'self.scalar_type()' of the forward

    Returns:
      The gradient of 'self', 'other'; None where it is not wanted or is zero.

    Source: derivatives.yaml:597 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        other: Tensor | None,
        rounding_mode: str | None,
        self: Tensor | None,
        self_scalar_type: torch.dtype,
    ) -> list[Tensor | None]: ...
