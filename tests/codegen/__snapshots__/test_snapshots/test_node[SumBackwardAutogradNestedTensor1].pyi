class SumBackwardAutogradNestedTensor1(FunctionalOperator, Protocol):
    """Backward of sum.dim_IntList for AutogradNestedTensor as a pure function of gradients and saved values.

    Forward: sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

    Formulas:
      self: _nested_sum_backward(grad, self, dim, keepdim)

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self'
      dim (int[]?): the forward's argument 'dim'
      keepdim (bool): the forward's argument 'keepdim'
      self (Tensor?): the forward's argument 'self'

    Returns:
      The gradient of 'self'; None where it is not wanted or is zero.

    Source: derivatives.yaml:1712 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        dim: Sequence[int] | None,
        keepdim: bool,
        self: Tensor | None,
    ) -> list[Tensor | None]: ...
