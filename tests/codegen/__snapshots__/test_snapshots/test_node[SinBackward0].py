    "SinBackward0": NodeRecord(
        operator='sin',
        forward_schema='sin(Tensor self) -> Tensor',
        dispatch_key='Default',
        origin='entry',
        inputs=('self',),
        outputs=('result',),
        mode='inline',
        reason='every name in its formulas links',
        yaml='derivatives.yaml',
        line=1556,
        doc="Backward of sin as a pure function of gradients and saved values.\n\nForward: sin(Tensor self) -> Tensor\n\nFormulas:\n  self: grad * self.cos().conj()\n\nArgs:\n  grads: the gradient of 'result'; None where it is undefined\n  needs_input_grad: whether a gradient is wanted for 'self'\n  self (Tensor?): the forward's argument 'self'\n\nReturns:\n  The gradient of 'self'; None where it is not wanted or is zero.\n\nSource: derivatives.yaml:1556 of torch 2.13.0.",
        formulas=(
            FormulaRecord(('self',), 'grad * self.cos().conj()', 1557),
        ),
        arguments=(
            ArgumentRecord('self', 'Tensor?', 'Tensor | None', 'self', "the forward's argument 'self'"),
        ),
    ),
