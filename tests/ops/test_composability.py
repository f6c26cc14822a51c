"""Operators compose with what torch has: tracers, fake tensors, vmap, and differentiation of their own results."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from tests.ops.node_set import NODE_SET, Made, NodeCase, all_same_bits, same_bits

Call = Callable[..., list[Tensor]]


def over_tensors(made: Made, through: Any) -> tuple[Call, list[Tensor]]:
    """The call of an operator as a function of its tensors alone, and those tensors; undefined results left out."""
    leaves, spec = pytree.tree_flatten([made.grads, *made.packed])
    positions = [position for position, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]

    def call(*tensors: Tensor) -> list[Tensor]:
        values = list(leaves)
        for position, tensor in zip(positions, tensors, strict=True):
            values[position] = tensor
        result = through(*pytree.tree_unflatten(values, spec))
        return [one for one in result if one is not None]

    return call, [leaves[position].detach() for position in positions]


def faces(made: Made) -> list[Any]:
    """The two ways to call an operator."""
    return [made.operator, made.operator.overload]


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_make_fx(case: NodeCase, mode: str) -> None:
    made = case.make()
    for face in faces(made):
        call, tensors = over_tensors(made, face)
        traced = make_fx(call, tracing_mode=mode)(*tensors)
        targets = {str(node.target) for node in traced.graph.nodes if node.op == "call_function"}
        assert not any(target.startswith("backbind") for target in targets), "the trace must go to the bottom"
        assert all_same_bits(traced(*tensors), call(*tensors))


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_symbolic_trace_keeps_the_operator(case: NodeCase) -> None:
    made = case.make()
    for face in faces(made):
        arguments = [made.grads, *made.packed]
        leaves, spec = pytree.tree_flatten(arguments)
        graph = fx.Graph()
        tracer = fx.proxy.GraphAppendingTracer(graph)
        values = [
            fx.Proxy(graph.placeholder(f"tensor_{position}"), tracer) if isinstance(leaf, Tensor) else leaf
            for position, leaf in enumerate(leaves)
        ]
        result = face(*pytree.tree_unflatten(values, spec))
        graph.output(result.node)
        module = fx.GraphModule(torch.nn.Module(), graph)
        assert [node.target for node in graph.nodes if node.op == "call_function"] == [made.operator.overload]
        loaded = pickle.loads(pickle.dumps(module))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        assert all_same_bits(loaded(*tensors), made.operator(*arguments))


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_fake_tensors_have_the_shapes_of_the_results(case: NodeCase) -> None:
    made = case.make()
    for face in faces(made):
        call, tensors = over_tensors(made, face)
        expected = call(*tensors)
        with FakeTensorMode() as mode:
            fakes = call(*(mode.from_tensor(tensor) for tensor in tensors))
        assert [(one.shape, one.dtype, one.device) for one in fakes] == [
            (one.shape, one.dtype, one.device) for one in expected
        ]


@pytest.mark.parametrize("node", ["MulBackward0", "TanhBackward0", "ViewBackward0", "CatBackward0"])
def test_fake_tensors_are_recognised_outside_their_mode(node: str) -> None:
    made = next(case for case in NODE_SET if case.node == node).make()
    call, tensors = over_tensors(made, made.operator)
    mode = FakeTensorMode()
    fakes = call(*(mode.from_tensor(tensor) for tensor in tensors))
    assert [one.shape for one in fakes] == [one.shape for one in call(*tensors)]
    assert all(isinstance(one, FakeTensor) for one in fakes)


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_vmap(case: NodeCase) -> None:
    """Under vmap an operator computes what it computes for each element alone."""
    first, second = case.make(seed=1), case.make(seed=2)
    for face in faces(first):
        call, tensors = over_tensors(first, face)
        other_call, others = over_tensors(second, face)
        pairs = list(zip(tensors, others, strict=True))
        # What is no number (an index, a mask) may have been made from the numbers, but has no gradient of its own.
        batched = [torch.stack(pair) for pair in pairs]
        expected = [torch.stack(pair) for pair in zip(call(*tensors), other_call(*others), strict=True)]
        actual = torch.vmap(lambda *values: tuple(call(*values)))(*batched)  # noqa: B023
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("case", [case for case in NODE_SET if case.twice], ids=str)
def test_double_backward_equals_autograd(case: NodeCase) -> None:
    """Differentiating the operator's result gives what differentiating eager's gradient gives, to the last bit."""
    made = case.make()
    grads = [grad if grad is None else grad.clone().requires_grad_() for grad in made.grads]
    ours = made.operator(grads, *made.packed)
    theirs = made.node(*grads)
    theirs = list(theirs) if isinstance(theirs, tuple) else [theirs]
    assert all_same_bits(ours, theirs)
    sources: list[Tensor] = [*made.inputs, *(grad for grad in grads if grad is not None)]
    assert all_same_bits(_gradients_of(ours, sources), _gradients_of(theirs, sources))


def _gradients_of(results: Sequence[Tensor | None], sources: Sequence[Tensor]) -> list[Tensor | None]:
    differentiable = [one for one in results if one is not None and one.requires_grad]
    assert [one is not None and one.requires_grad for one in results].count(True) == len(differentiable)
    if not differentiable:
        return []
    generator = torch.Generator().manual_seed(3)
    seeds = [torch.randn(one.shape, dtype=one.dtype, generator=generator) for one in differentiable]
    return list(torch.autograd.grad(differentiable, sources, seeds, retain_graph=True, allow_unused=True))


class ThroughOperator(torch.autograd.Function):
    """A forward whose backward is the functional operator of the node that it made."""

    @staticmethod
    def forward(ctx: Any, case: NodeCase, *inputs: Tensor) -> Any:
        with torch.enable_grad():
            leaves = tuple(one.detach().requires_grad_() for one in inputs)
            torch.manual_seed(0)
            outputs = case.forward(*leaves)
            listed = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        made = Made(case, leaves, tuple(one for one in listed if one.grad_fn is not None), ())
        ctx.made, ctx.outputs = made, listed
        return tuple(one.detach().clone() for one in made.outputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *output_grads: Tensor) -> Any:
        made: Made = Made(ctx.made.case, ctx.made.inputs, ctx.made.outputs, output_grads)
        results = made.call()
        gradients: list[Tensor | None] = [None] * len(made.inputs)
        for position, gradient in zip(made.reached_inputs(), results, strict=True):
            if position is not None:
                gradients[position] = gradient
        return None, *gradients


@pytest.mark.parametrize("case", [case for case in NODE_SET if case.smooth], ids=str)
def test_gradcheck(case: NodeCase) -> None:
    """The gradients are those of finite differences in double precision."""
    made = case.make()
    inputs = tuple(one.detach().requires_grad_() for one in made.inputs)
    assert torch.autograd.gradcheck(lambda *values: ThroughOperator.apply(case, *values), inputs)


_CHEAP = ("MulBackward0", "TanhBackward0", "MmBackward0", "CatBackward0", "SumBackward1", "ForeachTanhBackward0")


@pytest.mark.parametrize("case", [case for case in NODE_SET if case.node in _CHEAP], ids=str)
def test_gradcheck_of_the_operator_itself(case: NodeCase) -> None:
    """An operator is differentiable in its gradients and saved tensors, by finite differences."""
    made = case.make(size=2)
    call, tensors = over_tensors(made, made.operator)
    inputs = tuple(one.clone().requires_grad_(one.is_floating_point()) for one in tensors)
    assert torch.autograd.gradcheck(lambda *values: tuple(call(*values)), inputs)
    assert torch.autograd.gradgradcheck(lambda *values: tuple(call(*values)), inputs)


def test_an_exported_program_saves_and_loads() -> None:
    class Backward(torch.nn.Module):
        def forward(self, grad: Tensor, result: Tensor) -> Tensor:
            (gradient,) = torch.ops.backbind.TanhBackward0([grad], [True], result)
            return gradient

    arguments = (torch.randn(3), torch.rand(3))
    program = torch.export.export(Backward(), arguments)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    assert same_bits(torch.export.load(file).module()(*arguments), Backward()(*arguments))


def test_functional_call_and_grad() -> None:
    """Inside torch.func transforms an operator sees wrapped tensors, and must not look past the wrapping."""

    def loss(x: Tensor) -> Tensor:
        (gradient,) = backbind.ops.TanhBackward0([x], [True], x.tanh())
        assert gradient is not None
        return gradient.sum()

    x = torch.randn(4, dtype=torch.float64)
    by_hand = torch.func.grad(lambda x: (x * (1 - x.tanh() ** 2)).sum())(x)
    torch.testing.assert_close(torch.func.grad(loss)(x), by_hand)
    batch = torch.randn(3, 4, dtype=torch.float64)
    per_sample = torch.vmap(torch.func.grad(loss))(batch)
    torch.testing.assert_close(per_sample, torch.stack([torch.func.grad(loss)(row) for row in batch]))
    torch.testing.assert_close(torch.func.jacrev(loss)(x), by_hand)
