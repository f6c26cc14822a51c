class AsStridedBackward0(FunctionalOperator, Protocol):
    """Backward of as_strided as a pure function of gradients and saved values.

    Forward: as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)

    Formulas:
      self: as_strided_backward(grad, TensorGeometry(self), size, stride, storage_offset)

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self'
      self_geometry_sizes (SymInt[]): sizes of 'TensorGeometry(self)' of the forward
      self_geometry_strides (SymInt[]): strides of 'TensorGeometry(self)' of the forward
      self_geometry_storage_offset (SymInt): storage offset of 'TensorGeometry(self)' of the forward
      size (SymInt[]): the forward's argument 'size'
      storage_offset (SymInt?): the forward's argument 'storage_offset'
      stride (SymInt[]): the forward's argument 'stride'

    Returns:
      The gradient of 'self'; None where it is not wanted or is zero.

    Source: derivatives.yaml:339 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        self_geometry_sizes: Sequence[IntLike],
        self_geometry_strides: Sequence[IntLike],
        self_geometry_storage_offset: IntLike,
        size: Sequence[IntLike],
        storage_offset: IntLike | None,
        stride: Sequence[IntLike],
    ) -> list[Tensor | None]: ...
