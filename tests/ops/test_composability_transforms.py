"""Operators under vmap and under differentiation of their own results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor

from tests.ops.call_module import arguments_of, call_module, defined_results, inputs_of
from tests.ops.node_set import NODE_SET, Made, NodeCase, all_same_bits, as_list, same_bits

BATCH = 3
SIZE = 8
"""Elements then fill whole vectors of the processor: what is left over takes scalar code, which rounds differently."""

ONE_KERNEL_FOR_THE_BATCH = {
    "AbsBackward0",
    "AddmmBackward0",
    "ConvolutionBackward0",
    "GeluBackward0",
    "LinalgInvExBackward0",
    "LinalgQrBackward0",
    "MmBackward0",
    "NativeBatchNormBackward0",
    "NativeLayerNormBackward0",
    "NllLossBackward0",
    "ProdBackward0",
}
"""Nodes for which torch's rule computes the batch by other kernels than its elements: sums are taken in another order,
or a zero has the other sign. All others give the same bits."""


def assert_batch(case: NodeCase, batch: Tensor, elements: list[Tensor]) -> None:
    expected = torch.stack(elements)
    if case.node in ONE_KERNEL_FOR_THE_BATCH:
        torch.testing.assert_close(batch, expected, rtol=1e-11, atol=1e-13)
    else:
        assert same_bits(batch, expected)


def _gradients_first(made: Made) -> int:
    """How many of the inputs of the module are gradients."""
    return sum(1 for _ in arguments_of(made)[0].inputs())


WRONG_IN_TORCH = {"CdistBackward0"}
"""Nodes whose formula torch computes wrongly for a batch of gradients; a test below says when that changes."""


@pytest.mark.parametrize("case", [case for case in NODE_SET if case.node not in WRONG_IN_TORCH], ids=str)
def test_vmap_over_gradients(case: NodeCase) -> None:
    """A batch of gradients against the values of one forward, as in a Jacobian."""
    made = case.make(SIZE)
    results = defined_results(made)
    inputs = inputs_of(made)
    count = _gradients_first(made)
    saved = inputs[count:]
    batches = [torch.stack([torch.randn_like(one) for _ in range(BATCH)]) for one in made.output_grads]
    assert len(batches) == count
    for target in (made.operator.overload, made.operator):
        module = call_module(made, target, results)
        together = torch.vmap(lambda *grads: module(*grads, *saved))(*batches)  # noqa: B023
        apart = [module(*(batch[i] for batch in batches), *saved) for i in range(BATCH)]
        for position in range(len(results)):
            assert_batch(case, together[position], [one[position] for one in apart])


def test_vmap_of_cdist_is_wrong_in_torch() -> None:
    left, right = torch.rand(4, 3), torch.rand(5, 3)
    distances = torch.cdist(left, right, p=3.0)
    grads = torch.rand(BATCH, 4, 5)

    def backward(grad: Tensor) -> Tensor:
        gradient: Tensor = torch.ops.aten._cdist_backward(grad, left, right, 3.0, distances)
        return gradient

    together = torch.vmap(backward)(grads)
    assert not torch.allclose(together, torch.stack([backward(grad) for grad in grads]))


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_vmap_over_gradients_and_saved_tensors(case: NodeCase) -> None:
    """A batch of whole calls: per-sample gradients."""
    batch = [case.make(SIZE, seed) for seed in range(BATCH)]
    made = batch[0]
    results = defined_results(made)
    columns = list(zip(*(inputs_of(one) for one in batch), strict=True))
    in_dims = tuple(0 if isinstance(column[0], Tensor) else None for column in columns)
    stacked = [torch.stack(column) if isinstance(column[0], Tensor) else column[0] for column in columns]
    for target in (made.operator.overload, made.operator):
        module = call_module(made, target, results)
        together = torch.vmap(module, in_dims=in_dims)(*stacked)
        apart = [module(*inputs_of(one)) for one in batch]
        for position in range(len(results)):
            assert_batch(case, together[position], [one[position] for one in apart])


@pytest.mark.parametrize("node", ["MulBackward0", "MmBackward0", "SliceBackward0"])
def test_operators_inside_torch_func(node: str) -> None:
    """torch.func.grad, jacrev and vmap of them see through an operator as through its formula."""
    made = next(case for case in NODE_SET if case.node == node).make()
    results = defined_results(made)
    inputs = inputs_of(made)
    overload = call_module(made, None, results)
    operator = call_module(made, made.operator, results)
    formula = torch.fx.experimental.proxy_tensor.make_fx(overload)(*inputs)

    def loss(module: Callable[..., tuple[Tensor, ...]]) -> Callable[[Tensor], Tensor]:
        return lambda grad: sum((one.sin().sum() for one in module(grad, *inputs[1:])), start=torch.zeros(()))

    grad = made.output_grads[0]
    batch = torch.stack([grad, grad * 2])
    for transform, argument in (
        (torch.func.grad, grad),
        (torch.func.jacrev, grad),
        (lambda function: torch.vmap(torch.func.grad(function)), batch),
    ):
        expected = transform(loss(formula))(argument)
        assert same_bits(transform(loss(overload))(argument), expected)
        assert same_bits(transform(loss(operator))(argument), expected)


def _first_by_autograd(made: Made, grads: list[Tensor]) -> list[Tensor | None]:
    return list(torch.autograd.grad(made.outputs, made.inputs, grads, create_graph=True, allow_unused=True))


def _first_by_operator(made: Made, grads: list[Tensor]) -> list[Tensor | None]:
    gradients: list[Tensor | None] = [None] * len(made.inputs)
    results = Made(made.case, made.inputs, made.outputs, tuple(grads)).call()
    for position, gradient in zip(made.reached_inputs(), results, strict=True):
        assert position is not None
        gradients[position] = gradient
    return gradients


def _both_orders(
    case: NodeCase, first: Callable[[Made, list[Tensor]], list[Tensor | None]]
) -> tuple[list[Tensor | None], list[Tensor | None]]:
    """First gradients, and gradients of these for everything that they depend on."""
    made = case.make(5)
    grads = [one.clone().requires_grad_() for one in made.output_grads]
    gradients = first(made, grads)
    differentiable = [one for one in gradients if one is not None and one.requires_grad]
    generator = torch.Generator().manual_seed(3)
    seeds = [torch.randn(one.shape, dtype=one.dtype, generator=generator) for one in differentiable]
    second = torch.autograd.grad(differentiable, [*grads, *made.inputs], seeds, allow_unused=True)
    return [one if one is None else one.detach() for one in gradients], list(second)


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_double_backward_equals_autograd(case: NodeCase) -> None:
    """Differentiating an operator gives what differentiating eager's gradient (create_graph=True) gives."""
    if not case.twice:
        with pytest.raises((RuntimeError, NotImplementedError)) as eager:
            _both_orders(case, _first_by_autograd)
        with pytest.raises(eager.type) as ours:
            _both_orders(case, _first_by_operator)
        assert str(ours.value) == str(eager.value)
        return
    first, second = _both_orders(case, _first_by_operator)
    expected_first, expected_second = _both_orders(case, _first_by_autograd)
    assert any(one is not None for one in second)
    assert all_same_bits(first, expected_first)
    assert all_same_bits(second, expected_second)


class _ForwardWithOperator(torch.autograd.Function):
    """A forward whose backward is the operator of the node that it made."""

    @staticmethod
    def forward(ctx: Any, case: NodeCase, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.made = run_forward(case, tuple(one.detach().requires_grad_() for one in inputs))
        return tuple(one.detach() for one in ctx.made.outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return None, *_first_by_operator(ctx.made, list(grads))


def run_forward(case: NodeCase, inputs: tuple[Tensor, ...]) -> Made:
    with torch.enable_grad():
        outputs = tuple(one for one in as_list(case.forward(*inputs)) if one.grad_fn is not None)
    return Made(case, inputs, outputs, ())


SMOOTH = [case for case in NODE_SET if case.smooth]


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_gradcheck(case: NodeCase) -> None:
    """An operator gives the gradients that finite differences of the forward give."""
    apply: Callable[..., tuple[Tensor, ...]] = _ForwardWithOperator.apply
    assert torch.autograd.gradcheck(lambda *inputs: apply(case, *inputs), case.make().inputs)


@pytest.mark.parametrize("case", [case for case in SMOOTH if case.twice], ids=str)
def test_gradcheck_of_the_gradients(case: NodeCase) -> None:
    """An operator's own derivatives, in its gradients and through its saved values, are those of finite differences."""
    made = case.make()
    count = len(made.inputs)

    def gradients(*values: Tensor) -> tuple[Tensor, ...]:
        forward = run_forward(case, values[:count])
        results = Made(case, forward.inputs, forward.outputs, values[count:]).call()
        return tuple(one for one in results if one is not None)

    grads = tuple(one.requires_grad_() for one in made.output_grads)
    assert torch.autograd.gradcheck(gradients, (*made.inputs, *grads), fast_mode=True)


def test_every_node_of_double_precision_is_checked_but_those_with_a_reason() -> None:
    assert {case.node for case in NODE_SET} - {case.node for case in SMOOTH} == {
        "ConvolutionBackward0",
        "NativeDropoutBackward0",
        "ScaledDotProductFlashAttentionForCpuBackward0",
    }
    assert all(backbind.ops.get(case.node) is case.make().operator for case in NODE_SET)
