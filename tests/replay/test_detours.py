"""Which steps run by their formulas, and why others do not: nothing else tells the short way from the long one."""

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


def _detours(forward: Callable[[], Tensor], *, create_graph: bool = False) -> dict[str, int]:
    """Why steps of the second backward took the long way."""
    with backbind.capture():
        forward().backward(torch.ones(()), create_graph=create_graph)
        with backbind.capture() as session:
            forward().backward(torch.ones(()), create_graph=create_graph)
    return dict(session.stats.detours)


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
def test_ordinary_models_go_the_short_way(make: Callable[[], Callable[[], Tensor]]) -> None:
    assert _detours(make()) == {}


GRAPH = "a graph is built, or a mode, a transform or a profiler is at work"
HOOKS = "hooks on the node or its tensor"
OPAQUE = "a node that nothing is known of"
NO_FORMULAS = "a node whose formulas are not compiled here, or which takes lists of tensors"
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
        pytest.param(_with_hook, {HOOKS: 1}, id="hook"),
        pytest.param(_with_leaf_hook, {HOOKS: 1}, id="leaf hook"),
        pytest.param(_with_saved_tensor_hooks, {TENSORS: 1}, id="saved tensor hook"),
        pytest.param(
            lambda x: _Double.apply(x).sum(),  # type: ignore[no-untyped-call]
            # What Python has seen, a leaf does not get as its own.
            {OPAQUE: 1, LEAF: 1},
            id="function",
        ),
        pytest.param(lambda x: torch.stack(x.exp().unbind()).sum(), {NO_FORMULAS: 2}, id="lists"),
        pytest.param(lambda x: (x * 1j).abs().sum(), {TENSORS: 2, LEAF: 1}, id="complex"),
        # The gradient of a sum is one number under many strides, which a leaf must have for itself.
        pytest.param(lambda x: x.sum(), {LEAF: 1}, id="expanded gradient"),
        pytest.param(
            lambda x: functional.embedding(torch.ones(2, dtype=torch.long), x).sum(), {}, id="dense"
        ),
    ],
)
def test_why_a_step_goes_the_long_way(forward: Callable[[Tensor], Tensor], expected: dict[str, int]) -> None:
    x = torch.ones(3, 2)
    assert _detours(lambda: forward(x.clone().requires_grad_())) == expected


def test_a_backward_that_builds_a_graph_goes_the_long_way() -> None:
    x = _parameter(3)
    assert _detours(lambda: x.exp().sum(), create_graph=True) == {GRAPH: 3}


@pytest.mark.parametrize(
    ("surround", "detours"),
    [
        (contextlib.nullcontext, 0),
        (torch.inference_mode, 3),
        (lambda: torch.autocast("cpu"), 0),
        (lambda: torch.autograd.profiler.profile(), 3),
    ],
    ids=["plain", "inference mode", "autocast", "profiler"],
)
def test_what_surrounds_a_backward(
    surround: Callable[[], AbstractContextManager[object]], detours: int
) -> None:
    x = _parameter(3)
    loss = x.exp().sum()
    with backbind.capture():
        loss.backward(retain_graph=True)
        with backbind.capture() as session, surround():
            loss.backward(retain_graph=True)
    assert session.stats.steps == 3
    assert sum(session.stats.detours.values()) == detours
