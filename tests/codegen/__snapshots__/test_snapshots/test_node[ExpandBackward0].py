    "ExpandBackward0": NodeRecord(
        operator='expand',
        forward_schema='expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)',
        dispatch_key='Default',
        origin='entry',
        inputs=('self',),
        outputs=('result',),
        mode='inline',
        reason='every name in its formulas links',
        yaml='derivatives.yaml',
        line=665,
        doc="Backward of expand as a pure function of gradients and saved values.\n\nForward: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)\n\nFormulas:\n  self: at::sum_to(grad, self.sym_sizes())\n\nArgs:\n  grads: the gradient of 'result'; None where it is undefined\n  needs_input_grad: whether a gradient is wanted for 'self'\n  self_sym_sizes (SymInt[]): 'self.sym_sizes()' of the forward\n\nReturns:\n  The gradient of 'self'; None where it is not wanted or is zero.\n\nSource: derivatives.yaml:665 of torch 2.13.0.",
        formulas=(
            FormulaRecord(('self',), 'at::sum_to(grad, self.sym_sizes())', 666),
        ),
        arguments=(
            ArgumentRecord('self_sym_sizes', 'SymInt[]', 'Sequence[IntLike]', 'self_sym_sizes', "'self.sym_sizes()' of the forward"),
        ),
    ),
