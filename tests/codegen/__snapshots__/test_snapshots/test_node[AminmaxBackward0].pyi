class AminmaxBackward0(FunctionalOperator, Protocol):
    """Backward of aminmax as a pure function of gradients and saved values.

    Forward: aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)

    Formulas:
      self: aminmax_backward(self, dim, keepdim, grad_min, grad_max, min, max)

    Args:
      grads: the gradient of 'min', 'max'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self'
      dim (int?): the forward's argument 'dim'
      keepdim (bool): the forward's argument 'keepdim'
      self (Tensor?): the forward's argument 'self'
      max (Tensor?): the forward's result 'max'
      min (Tensor?): the forward's result 'min'

    Returns:
      The gradient of 'self'; None where it is not wanted or is zero.

    Source: derivatives.yaml:1213 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        dim: int | None,
        keepdim: bool,
        self: Tensor | None,
        max: Tensor | None,
        min: Tensor | None,
    ) -> list[Tensor | None]: ...
