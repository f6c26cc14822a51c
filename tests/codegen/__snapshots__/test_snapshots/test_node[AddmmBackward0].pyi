class AddmmBackward0(FunctionalOperator, Protocol):
    """Backward of addmm as a pure function of gradients and saved values.

    Forward: addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor

    Formulas:
      self: maybe_multiply(grad, beta.conj())
      mat1: mm_mat1_backward(grad, mat2, mat1.sym_sizes(), mat1.sym_strides(), mat1.layout(), alpha)
      mat2: mm_mat2_backward(grad, mat1, mat2.sym_sizes(), mat2.sym_strides(), mat2.layout(), alpha)

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self', 'mat1', 'mat2'
      alpha (Scalar): the forward's argument 'alpha'
      beta (Scalar): the forward's argument 'beta'
      mat1 (Tensor?): the forward's argument 'mat1'
      mat1_layout (Layout): 'mat1.layout()' of the forward
      mat1_sym_sizes (SymInt[]): 'mat1.sym_sizes()' of the forward
      mat1_sym_strides (SymInt[]): 'strides_or_error(mat1, "mat1")' of the forward
      mat2 (Tensor?): the forward's argument 'mat2'
      mat2_layout (Layout): 'mat2.layout()' of the forward
      mat2_sym_sizes (SymInt[]): 'mat2.sym_sizes()' of the forward
      mat2_sym_strides (SymInt[]): 'strides_or_error(mat2, "mat2")' of the forward

    Returns:
      The gradient of 'self', 'mat1', 'mat2'; None where it is not wanted or is zero.

    Source: derivatives.yaml:256 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        alpha: Number,
        beta: Number,
        mat1: Tensor | None,
        mat1_layout: torch.layout,
        mat1_sym_sizes: Sequence[IntLike],
        mat1_sym_strides: Sequence[IntLike],
        mat2: Tensor | None,
        mat2_layout: torch.layout,
        mat2_sym_sizes: Sequence[IntLike],
        mat2_sym_strides: Sequence[IntLike],
    ) -> list[Tensor | None]: ...
