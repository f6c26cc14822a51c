"""What a traced graph cannot hold is refused by name, with what to do, before anything is called or changed."""

from __future__ import annotations

import backbind
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.graph.gradients import assert_traces, leaf

HEAD = "this backward cannot be traced, because of\n"
HOOKS = "\nhooks are a user's code: remove them before the trace;"
NODES = (
    "\nsuch nodes have no operator: keep them off the way to the inputs, by naming inputs whose gradients do not pass "
    "through them or by a forward without them;"
)
TAIL = "\nbackbind.capture() runs all of this as eager does"


def refusal(outputs: torch.Tensor, inputs: list[torch.Tensor] | None = None) -> str:
    with pytest.raises(backbind.TraceError) as caught:
        backbind.trace(outputs, inputs)
    text = str(caught.value)
    assert text.startswith(HEAD)
    assert text.endswith(TAIL)
    return text.removeprefix(HEAD).removesuffix(TAIL)


def test_hooks_are_refused_by_kind() -> None:
    value = leaf(3)
    inner = value.exp()
    loss = (inner * 2).sum()
    inner.register_hook(lambda gradient: None)
    inner.retain_grad()
    assert inner.grad_fn is not None
    inner.grad_fn.register_prehook(lambda gradients: None)
    inner.grad_fn.register_hook(lambda inputs, outputs: None)
    value.register_hook(lambda gradient: None)
    value.register_post_accumulate_grad_hook(lambda tensor: None)
    assert refusal(loss) == (
        "  step 2, ExpBackward0: tensor hook, retained gradient, node pre-hook, node post-hook\n"
        "  step 3, torch::autograd::AccumulateGrad: tensor hook, post-accumulate-grad hook" + HOOKS
    )


class Doubled(torch.autograd.Function):
    """A Python function."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, value: torch.Tensor) -> torch.Tensor:
        return value * 2

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0] * 2


def test_python_functions_are_refused_by_name() -> None:
    value = leaf(3)
    loss = Doubled.apply(value).sum()  # type: ignore[no-untyped-call]
    assert refusal(loss) == "  step 1, DoubledBackward: a Python autograd.Function" + NODES


def test_changes_of_views_are_refused_by_name() -> None:
    value = leaf(3)
    copy = value.clone()
    copy[0] = 1.0
    assert (
        refusal(copy.sum())
        == "  step 1, torch::autograd::CopySlices: a change of a view in place (CopySlices)" + NODES
    )


def test_functions_of_cpp_are_refused_by_name() -> None:
    value = leaf(3)
    moved = torch.empty(3).copy_(value)
    name = moved.grad_fn.name() if moved.grad_fn is not None else ""
    assert refusal(moved.sum()) == f"  step 1, {name}: a C++ function that is not of derivatives.yaml" + NODES


def test_everything_is_named_at_once() -> None:
    value = leaf(3)
    loss = Doubled.apply(value.exp()).sum()  # type: ignore[no-untyped-call]
    value.register_hook(lambda gradient: None)
    assert refusal(loss) == (
        "  step 1, DoubledBackward: a Python autograd.Function\n"
        "  step 3, torch::autograd::AccumulateGrad: tensor hook" + NODES + HOOKS
    )


def test_what_is_not_on_the_way_is_not_refused() -> None:
    value, other = leaf(3), leaf(3)
    assert_traces((value.exp() + Doubled.apply(other)).sum(), [value])  # type: ignore[no-untyped-call]


def test_a_reentrant_checkpoint_is_refused_by_name() -> None:
    layer, value = nn.Linear(4, 4), leaf(2, 4)
    loss = checkpoint(layer, value, use_reentrant=True).sum()
    assert refusal(loss) == "  step 1, CheckpointFunctionBackward: a Python autograd.Function" + NODES
    assert refusal(loss, [value]) == refusal(loss)


def test_parameters_inside_a_reentrant_checkpoint_are_not_used() -> None:
    layer, value = nn.Linear(4, 4), leaf(2, 4)
    loss = checkpoint(layer, value, use_reentrant=True).sum()
    with pytest.raises(RuntimeError) as eager:
        torch.autograd.grad(loss, list(layer.parameters()), retain_graph=True)
    with pytest.raises(RuntimeError) as traced:
        backbind.trace(loss, dict(layer.named_parameters()))
    assert str(traced.value) == str(eager.value)


def test_sizes_that_are_symbols_are_refused() -> None:
    values = [torch.ones(2, 3), torch.ones(4, 3)]
    jagged = torch.nested.nested_tensor(values, layout=torch.jagged, requires_grad=True)
    assert refusal((jagged * 2).values().sum(), [jagged]) == (
        "  step 1, NestedGetValuesBackward0: sizes that are symbols, as jagged tensors have\n"
        "  step 2, MulBackward0: sizes that are symbols, as jagged tensors have\n"
        "a graph holds sizes as numbers: trace a backward over padded or separate tensors;"
    )


def test_a_freed_graph_raises_eagers_error() -> None:
    value = leaf(3)
    loss = value.exp().sum()
    loss.backward()
    with pytest.raises(RuntimeError) as eager:
        loss.backward()
    with pytest.raises(RuntimeError) as traced:
        backbind.trace(loss)
    assert str(traced.value) == str(eager.value)


def test_a_tensor_changed_in_place_raises_eagers_error() -> None:
    value = leaf(3)
    inner = value.exp()
    loss = inner.sum()
    with torch.no_grad():
        inner.add_(1)
    with pytest.raises(RuntimeError) as eager:
        loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError) as traced:
        backbind.trace(loss)
    assert str(traced.value) == str(eager.value)
