class BlockDiagBackward0(FunctionalOperator, Protocol):
    """Backward of block_diag as a pure function of gradients and saved values.

    Forward: block_diag(Tensor[] tensors) -> Tensor

    Formulas:
      tensors: block_diag_backward(grad, to_args_sizes(tensors), to_args_scalartypes(tensors))

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'tensors'
      tensors_args_scalartypes (ScalarType[]): 'to_args_scalartypes(tensors)' of the forward
      tensors_args_sizes_values (int[]): values of 'to_args_sizes(tensors)' of the forward
      tensors_args_sizes_lengths (int[]): lengths of 'to_args_sizes(tensors)' of the forward
      tensors_size (int): length of the argument 'tensors'

    Returns:
      The gradient of each element of 'tensors'; None where it is not wanted or is zero.

    Source: derivatives.yaml:564 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        tensors_args_scalartypes: Sequence[torch.dtype],
        tensors_args_sizes_values: Sequence[int],
        tensors_args_sizes_lengths: Sequence[int],
        tensors_size: int,
    ) -> list[Tensor | None]: ...
