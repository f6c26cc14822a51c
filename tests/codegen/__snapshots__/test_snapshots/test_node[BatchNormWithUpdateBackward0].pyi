class BatchNormWithUpdateBackward0(FunctionalOperator, Protocol):
    """Backward of _batch_norm_with_update as a pure function of gradients and saved values.

    Forward: _batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)

    Formulas:
      input, weight, bias: grad.defined() ? batch_norm_backward(grad, input, weight, running_mean, running_var, result1, result2, /*update*/true, eps, grad_input_mask, retain_variables ? result3.clone() : result3) : std::tuple<Tensor, Tensor, Tensor>()

    Args:
      grads: the gradient of 'result0'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'input', 'weight', 'bias'
      eps (float): the forward's argument 'eps'
      input (Tensor?): the forward's argument 'input'
      running_mean (Tensor?): the forward's argument 'running_mean'
      running_var (Tensor?): the forward's argument 'running_var'
      weight (Tensor?): the forward's argument 'weight'
      result1 (Tensor?): the forward's result 'result1'
      result2 (Tensor?): the forward's result 'result2'
      result3 (Tensor?): the forward's result 'result3'

    Returns:
      The gradient of 'input', 'weight', 'bias'; None where it is not wanted or is zero.

    Source: derivatives.yaml:1308 of torch 2.13.0.
    """

    def __call__(
        self_,
        /,
        grads: Sequence[Tensor | None],
        needs_input_grad: Sequence[bool],
        eps: float,
        input: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None,
        result1: Tensor | None,
        result2: Tensor | None,
        result3: Tensor | None,
    ) -> list[Tensor | None]: ...
