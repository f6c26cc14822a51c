class CatBackward0(FunctionalOperator, Protocol):
    """Backward of cat as a pure function of gradients and saved values.

    Forward: cat(Tensor[] tensors, int dim=0) -> Tensor

    Formulas:
      tensors: cat_tensors_backward(grad, to_args_sizes_symint(tensors), to_args_scalartypes(tensors), dim)

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'tensors'
      dim (int): the forward's argument 'dim'
      tensors_args_scalartypes (ScalarType[]): 'to_args_scalartypes(tensors)' of the forward
      tensors_args_sizes_symint_values (SymInt[]): values of 'to_args_sizes_symint(tensors)' of the forward
      tensors_args_sizes_symint_lengths (int[]): lengths of 'to_args_sizes_symint(tensors)' of the forward
      tensors_size (int): length of the argument 'tensors'

    Returns:
      The gradient of each element of 'tensors'; None where it is not wanted or is zero.

    Source: derivatives.yaml:386 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        dim: int,
        tensors_args_scalartypes: Sequence[torch.dtype],
        tensors_args_sizes_symint_values: Sequence[IntLike],
        tensors_args_sizes_symint_lengths: Sequence[int],
        tensors_size: int,
    ) -> list[Tensor | None]: ...
