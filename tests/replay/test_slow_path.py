"""Which steps run by their formulas, and why others take the slow path: nothing else tells the two apart."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

Reasons = dict[str, dict[str, int]]
"""How often each type of node took the slow path, for each reason."""


def _slow_path(forward: Callable[[], Tensor], *, create_graph: bool = False) -> Reasons:
    """Why steps of the second backward took the slow path."""
    with backbind.capture():
        forward().backward(torch.ones(()), create_graph=create_graph)
        with backbind.capture() as session:
            forward().backward(torch.ones(()), create_graph=create_graph)
    return {reason: dict(nodes) for reason, nodes in session.stats.slow_path_reasons.items()}


def _parameter(*sizes: int) -> Tensor:
    return torch.ones(sizes, requires_grad=True)


def _network() -> Callable[[], Tensor]:
    network = nn.Sequential(
        nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2, bias=False), nn.Tanh()
    )
    return lambda: network(torch.ones(3, 4)).square().mean()


def _recurrent() -> Callable[[], Tensor]:
    weight, state = _parameter(4, 4), _parameter(4)
    return lambda: (torch.sigmoid(weight @ state * 2) - state / (state + 1)).sum()


def _convolutional() -> Callable[[], Tensor]:
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU())
    return lambda: network(torch.ones(2, 1, 5, 5)).permute(1, 0, 2, 3).sum((0, 1)).mean()


@pytest.mark.parametrize("make", [_network, _recurrent, _convolutional])
def test_ordinary_models_take_no_slow_path(make: Callable[[], Callable[[], Tensor]]) -> None:
    assert _slow_path(make()) == {}


GRAPH = "a graph is built, or a mode, a transform or a profiler is active"
HOOKS = "hooks on the node or its tensor"
OPAQUE = "a function of Python or C++, or another node that is not one of torch's operators"
NO_FORMULAS = "the node's formulas are not compiled here"
TENSORS = "tensors other than dense real ones of the CPU, saved tensors with hooks or changed ones"
LEAF = "a gradient that its leaf cannot have as it is"


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


def _with_hook(x: Tensor) -> Tensor:
    middle = x.exp()
    middle.register_hook(lambda grad: None)
    return middle.sum()


def _with_leaf_hook(x: Tensor) -> Tensor:
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    return x.exp().sum()


def _with_saved_tensor_hooks(x: Tensor) -> Tensor:
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        return x.exp().sum()


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        pytest.param(_with_hook, {HOOKS: {"ExpBackward0": 1}}, id="hook"),
        pytest.param(_with_leaf_hook, {HOOKS: {"AccumulateGrad": 1}}, id="leaf hook"),
        pytest.param(_with_saved_tensor_hooks, {TENSORS: {"ExpBackward0": 1}}, id="saved tensor hook"),
        pytest.param(
            lambda x: _Double.apply(x).sum(),  # type: ignore[no-untyped-call]
            # What Python has seen, a leaf does not get as its own.
            {OPAQUE: {"torch.autograd.Function": 1}, LEAF: {"AccumulateGrad": 1}},
            id="function",
        ),
        pytest.param(
            lambda x: (lambda y: (y.t().mul_(2), y)[1])(x * 1).sum(),
            {OPAQUE: {"CopySlices": 1}},
            id="view changed in place",
        ),
        pytest.param(
            lambda x: torch._foreach_sin([x.exp(), x])[0].sum(),
            {},
            id="lists",
        ),
        pytest.param(
            lambda x: torch.atan2(torch.atan2(x, x * 2), x).as_strided((2,), (1,)).sum(),
            {NO_FORMULAS: {"Atan2Backward0": 2, "AsStridedBackward0": 1}},
            id="several of one type",
        ),
        pytest.param(
            lambda x: x.exp().as_strided((2,), (1,)).cumprod(0).sum(),
            {NO_FORMULAS: {"AsStridedBackward0": 1}},
            id="no formulas",
        ),
        pytest.param(
            lambda x: (x * 1j).abs().sum(),
            {TENSORS: {"AbsBackward0": 1, "MulBackward0": 1}, LEAF: {"AccumulateGrad": 1}},
            id="complex",
        ),
        # The gradient of a sum is one number under many strides, which a leaf must have for itself.
        pytest.param(lambda x: x.sum(), {LEAF: {"AccumulateGrad": 1}}, id="expanded gradient"),
        pytest.param(
            lambda x: functional.embedding(torch.ones(2, dtype=torch.long), x).sum(), {}, id="dense"
        ),
    ],
)
def test_why_a_step_takes_the_slow_path(forward: Callable[[Tensor], Tensor], expected: Reasons) -> None:
    x = torch.ones(3, 2)
    assert _slow_path(lambda: forward(x.clone().requires_grad_())) == expected


def test_a_backward_that_builds_a_graph_takes_the_slow_path() -> None:
    x = _parameter(3)
    assert _slow_path(lambda: x.exp().sum(), create_graph=True) == {
        GRAPH: {"AccumulateGrad": 1, "ExpBackward0": 1, "SumBackward0": 1}
    }


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_gradients_that_are_returned_take_no_slow_path(kept: int) -> None:
    """Of a leaf, of a value in the middle that is an input too, and what goes on from there."""
    x = _parameter(3)
    middle = x.exp()
    loss = middle.square().sum()
    inputs = ([x], [middle], [middle, x])[kept]
    expected = torch.autograd.grad(loss, inputs, retain_graph=True)
    with backbind.capture() as session:
        actual = torch.autograd.grad(loss, inputs)
    assert session.stats.slow_path_reasons == {}
    for one, other in zip(expected, actual, strict=True):
        assert torch.equal(one, other)
        assert (one._version, one._is_view(), one.stride()) == (
            other._version,
            other._is_view(),
            other.stride(),
        )


def test_counts_add_up_over_backwards_sessions_and_the_process() -> None:
    x = _parameter(3)
    with backbind.capture() as outer:
        torch.atan2(x.exp(), x)[0].backward()
        with backbind.capture() as inner:
            for _ in range(3):
                torch.atan2(x.exp(), x)[0].backward()
    assert outer.stats.slow_path_reasons == {NO_FORMULAS: {"Atan2Backward0": 1}}
    assert inner.stats.slow_path_reasons == {NO_FORMULAS: {"Atan2Backward0": 3}}
    assert backbind.stats().slow_path_reasons == {NO_FORMULAS: {"Atan2Backward0": 4}}


@pytest.mark.parametrize(
    ("surround", "slow"),
    [
        (contextlib.nullcontext, 0),
        (torch.inference_mode, 3),
        (lambda: torch.autocast("cpu"), 0),
        (lambda: torch.autograd.profiler.profile(), 3),
    ],
    ids=["plain", "inference mode", "autocast", "profiler"],
)
def test_what_surrounds_a_backward(surround: Callable[[], AbstractContextManager[object]], slow: int) -> None:
    x = _parameter(3)
    loss = x.exp().sum()
    with backbind.capture():
        loss.backward(retain_graph=True)
        with backbind.capture() as session, surround():
            loss.backward(retain_graph=True)
    assert session.stats.steps == 3
    reasons = session.stats.slow_path_reasons.values()
    assert sum(sum(nodes.values()) for nodes in reasons) == slow
