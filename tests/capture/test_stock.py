"""Beside torch's own compiled autograd, and whatever else in torch takes the engine's one entry for a while."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import backbind
import pytest
import torch
import torch._dynamo
import torch._dynamo.compiled_autograd as stock

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def clean_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Compiler:
    """Counts what stock compiled autograd hands over, and compiles nothing."""

    def __init__(self) -> None:
        self.graphs = 0
        self.runs = 0

    def __call__(self, graph: torch.fx.GraphModule) -> Callable[..., Any]:
        self.graphs += 1

        def run(*args: Any) -> Any:
            self.runs += 1
            return graph(*args)

        return run


def backward() -> None:
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def ran(session: backbind._capture.Session) -> int:
    return session.stats.captures + session.stats.replays


def test_stock_around_capture_keeps_its_backwards(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="backbind")
    compiler = Compiler()
    with stock._enable(compiler):
        with backbind.capture() as session:
            assert not backbind.is_enabled()
            backward()
        backward()
    assert (compiler.runs, ran(session)) == (2, 0)
    assert "torch's compiled autograd is active: backwards are left to it" in caplog.messages
    backward()
    assert compiler.runs == 2


def test_capture_around_stock_goes_on_afterwards() -> None:
    compiler = Compiler()
    with backbind.capture() as session:
        backward()
        with stock._enable(compiler):
            backward()
        backward()
    assert (compiler.runs, ran(session)) == (1, 2)


def test_nested_both_ways() -> None:
    outer, inner = Compiler(), Compiler()
    with stock._enable(outer):
        backward()
        with backbind.capture() as session:
            with stock._enable(inner):
                backward()
            backward()
        backward()
    with backbind.capture() as after:
        backward()
    # Stock's look-up takes the second compiler's graph from what the first compiled, so only the sum is told.
    assert (outer.runs + inner.runs, ran(session), ran(after)) == (4, 0, 1)


def _func_grad() -> None:
    torch.func.grad(lambda x: (x * x).sum())(torch.ones(2))


def _vmap_of_grad() -> None:
    torch.func.vmap(torch.func.grad(lambda x: (x * x).sum()))(torch.ones(2, 2))


def _compile(backend: str) -> Callable[[], None]:
    def run() -> None:
        x = torch.ones(4, requires_grad=True)
        torch.compile(lambda y: (y * 2).sin(), backend=backend)(x).sum().backward()

    return run


def _stock() -> None:
    with stock._enable(Compiler()):
        backward()


def _stock_that_fails() -> None:
    def fails(graph: torch.fx.GraphModule) -> Any:
        raise RuntimeError("no compiler today")

    with contextlib.suppress(Exception), stock._enable(fails):
        backward()


def _disable() -> None:
    stock._disable().__enter__()


TAKERS: dict[str, Callable[[], object]] = {
    "func.grad": _func_grad,
    "vmap of grad": _vmap_of_grad,
    "jacrev": lambda: torch.func.jacrev(lambda x: x.sin())(torch.ones(2)),
    "dynamo.reset": torch._dynamo.reset,
    "compiler.reset": torch.compiler.reset,
    "compiled region, aot_eager": _compile("aot_eager"),
    "compiled region, inductor": _compile("inductor"),
    "stock compiled autograd": _stock,
    "stock compiled autograd that fails": _stock_that_fails,
    "stock disabled": _disable,
}
"""What takes the engine's entry for itself and then leaves it empty."""


@pytest.mark.parametrize("taker", TAKERS)
def test_a_context_captures_on_after_others_took_the_entry(taker: str) -> None:
    with backbind.capture() as session:
        backward()
        TAKERS[taker]()
        before = ran(session)
        assert backbind.is_enabled()
        backward()
    assert ran(session) == before + 1


@pytest.mark.parametrize("taker", TAKERS)
def test_an_enabled_process_captures_on_after_others_took_the_entry(taker: str) -> None:
    session = backbind.enable()
    backward()
    TAKERS[taker]()
    before = ran(session)
    assert backbind.is_enabled()
    backward()
    assert ran(session) == before + 1


@pytest.mark.parametrize("taker", TAKERS)
def test_whoever_takes_the_entry_inside_a_backward_breaks_nothing(taker: str) -> None:
    seen: list[str] = []

    def run() -> list[float]:
        x = torch.ones(3, requires_grad=True)
        hidden = x.sin()

        def hook(grad: torch.Tensor) -> None:
            with torch.enable_grad():
                try:
                    TAKERS[taker]()
                    seen.append("no error")
                except Exception as error:
                    seen.append(f"{type(error).__name__}: {error}")

        hidden.register_hook(hook)
        hidden.sum().backward()
        assert x.grad is not None
        return x.grad.tolist()

    expected, expected_seen = run(), list(seen)
    seen.clear()
    with backbind.capture():
        assert (run(), seen) == (expected, expected_seen)
        seen.clear()
        assert (run(), seen) == (expected, expected_seen)


def test_a_captured_backward_inside_a_compiled_function_breaks_nothing() -> None:
    @torch.compile(backend="aot_eager")
    def step(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).sin() * x

    def run() -> list[float]:
        x = torch.ones(3, requires_grad=True)
        hidden = step(x)
        hidden.register_hook(lambda grad: step(grad))
        hidden.sum().backward()
        assert x.grad is not None
        return x.grad.tolist()

    expected = run()
    with backbind.capture() as session:
        assert run() == expected
        assert run() == expected
    assert ran(session) == 2
