class ExpandBackward0(FunctionalOperator, Protocol):
    """Backward of expand as a pure function of gradients and saved values.

    Forward: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)

    Formulas:
      self: at::sum_to(grad, self.sym_sizes())

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self'
      self_sym_sizes (SymInt[]): 'self.sym_sizes()' of the forward

    Returns:
      The gradient of 'self'; None where it is not wanted or is zero.

    Source: derivatives.yaml:665 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        self_sym_sizes: Sequence[IntLike],
    ) -> list[Tensor | None]: ...
