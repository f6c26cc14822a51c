class ForeachDivBackward1ScalarList(FunctionalOperator, Protocol):
    """Backward of _foreach_div.ScalarList as a pure function of gradients and saved values.

    Forward: _foreach_div.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]

    Formulas:
      self: div_tensor_self_backward(grad, other, self.scalar_type())

    Args:
      grads: the gradient of each element of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self'
      scalars (Scalar[]): the forward's argument 'scalars'
      self (Tensor[]): the forward's argument 'self'
      self_size (int): length of the argument 'self'

    Returns:
      The gradient of each element of 'self'; None where it is not wanted or is zero.

    Source: foreach of the entry at derivatives.yaml:593 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        scalars: Sequence[Number],
        self: Sequence[Tensor],
        self_size: int,
    ) -> list[Tensor | None]: ...
