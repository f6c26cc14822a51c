class CdistBackwardBackward0(FunctionalOperator, Protocol):
    """Backward of _cdist_backward as a pure function of gradients and saved values.

    Forward: _cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor

    Formulas:
      grad: not_implemented("_cdist_backward")
      x1: not_implemented("_cdist_backward")
      x2: not_implemented("_cdist_backward")
      cdist: not_implemented("_cdist_backward")

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'grad', 'x1', 'x2', 'cdist'

    Returns:
      The gradient of 'grad', 'x1', 'x2', 'cdist'; None where it is not wanted or is zero.

    Source: derivatives.yaml:1362 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
    ) -> list[Tensor | None]: ...
