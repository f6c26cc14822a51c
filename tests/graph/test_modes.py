"""Tracing is nobody's business: no mode sees it, and none changes what it gives."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import backbind
import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from tests.graph.gradients import differences, eager_gradients, leaf


class Dispatched(TorchDispatchMode):
    """Counts what it sees."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[object] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


class Called(TorchFunctionMode):
    """Counts what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def program() -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Numbers and tensors of one element are saved, too."""
    value = leaf(3)
    factor = torch.tensor(3.0, dtype=torch.float64)
    return ((value / 3).exp() * factor * 2.5).square().sum(), [value]


@contextlib.contextmanager
def float64_by_default() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def debug_mode() -> Any:
    from torch.utils._debug_mode import DebugMode

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with DebugMode():
            yield


SURROUNDINGS: dict[str, Callable[[], Any]] = {
    "dispatch mode": Dispatched,
    "function mode": Called,
    "flop counter": lambda: FlopCounterMode(display=False),
    "debug mode": debug_mode,
    "fake tensors": FakeTensorMode,
    "default device": lambda: torch.device("meta"),
    "default dtype": float64_by_default,
    "inference mode": torch.inference_mode,
    "no grad": torch.no_grad,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "anomaly mode": lambda: torch.autograd.set_detect_anomaly(True, check_nan=False),
    "saved tensors hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda one: 0, lambda one: one),
}


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("copy_saved", [False, True], ids=["shared", "copied"])
@pytest.mark.parametrize("surroundings", list(SURROUNDINGS))
def test_a_trace_is_the_same_in_any_surroundings(surroundings: str, copy_saved: bool) -> None:
    loss, inputs = program()
    with SURROUNDINGS[surroundings]():
        graph = backbind.trace(loss, inputs, copy_saved=copy_saved)
    assert not any(buffer.is_inference() for buffer in graph.buffers())
    assert differences(graph(), eager_gradients(loss, inputs)) == {}


@pytest.mark.parametrize("mode", [Dispatched, Called])
def test_a_mode_sees_nothing_of_a_trace(mode: Callable[[], Any]) -> None:
    loss, inputs = program()
    with mode() as on:
        backbind.trace(loss, inputs, copy_saved=True)
        assert on.seen == []
        leaf(2).exp()
        assert on.seen != []


def test_a_trace_in_a_hook_of_a_backward() -> None:
    loss, inputs = program()
    traced: list[tuple[torch.Tensor, ...]] = []
    value = leaf(3)
    value.register_hook(lambda gradient: traced.append(backbind.trace(loss, inputs)()))
    value.exp().sum().backward()
    assert differences(traced[0], eager_gradients(loss, inputs)) == {}


def test_a_graph_that_was_traced_in_inference_mode_can_be_differentiated() -> None:
    value, factor = leaf(3), leaf(3)
    output = value * factor
    with torch.inference_mode():
        graph = backbind.trace(output, [value])
    given = leaf(3)
    with torch.enable_grad():
        (gradient,) = torch.fx.Interpreter(graph).run(given)
    assert torch.equal(torch.autograd.grad(gradient.sum(), given)[0], factor)


def test_fake_tensors_trace_to_a_graph_of_fake_tensors() -> None:
    with FakeTensorMode():
        value = torch.empty(3, requires_grad=True)
        loss = (value / 3).exp().sum()
        (gradient,) = backbind.trace(loss, [value])()
    assert (type(gradient).__name__, gradient.shape) == ("FakeTensor", (3,))


@pytest.mark.parametrize("mode", [Dispatched, lambda: FlopCounterMode(display=False)])
def test_a_graph_runs_under_modes(mode: Callable[[], Any]) -> None:
    loss, inputs = program()
    graph = backbind.trace(loss, inputs)
    with mode():
        traced = graph()
    assert differences(traced, eager_gradients(loss, inputs)) == {}
