"""The face of capture: contexts, the decorator, the process-wide switch, what is counted, said and logged."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import backbind
import pytest
import torch

from tests.processes import run_python
from tests.replay.differential import apply


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (3,)), requires_grad=True)


def backward() -> None:
    """Three steps: SumBackward0, SinBackward0, AccumulateGrad."""
    leaf().sin().sum().backward()


def test_a_context_gives_its_session() -> None:
    with backbind.capture() as session:
        backward()
        assert (session.stats.captures, session.stats.replays, session.stats.steps) == (1, 0, 3)
        backward()
    backward()
    stats = session.stats
    assert (stats.captures, stats.replays, stats.steps, stats.plans, stats.fallbacks) == (1, 1, 6, 1, 0)
    assert (session.backend, stats.recapture_reasons, stats.fallback_reasons) == ("native", {}, {})


def test_a_context_may_be_entered_again_and_inside_itself() -> None:
    context = backbind.capture()
    for _ in range(2):
        with context as session, context as same:
            assert session is same is context.session
            backward()
        assert not backbind.is_enabled()
    assert context.session.stats.captures + context.session.stats.replays == 2


def test_sessions_count_apart_and_the_process_counts_all() -> None:
    with backbind.capture() as outer:
        backward()
        with backbind.capture() as inner:
            backward()
            backward()
        backward()
    assert (outer.stats.captures, outer.stats.replays) == (1, 1)
    assert (inner.stats.captures, inner.stats.replays) == (0, 2)
    total = backbind.stats()
    assert (total.captures, total.replays, total.steps, total.plans) == (1, 3, 12, 1)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_ends_the_context(error: type[BaseException]) -> None:
    with pytest.raises(error), backbind.capture() as session:
        raise error
    backward()
    assert session.stats.captures == 0
    assert not backbind.is_enabled()


class Trainer:
    calls = 0

    @backbind.capture
    def step(self, twice: bool = False) -> str:
        """Runs a backward."""
        self.calls += 1
        backward()
        return self.step() if twice else "done"

    @classmethod
    @backbind.capture()
    def shared(cls) -> str:
        backward()
        return cls.__name__

    @staticmethod
    @backbind.capture(backend="native")
    def alone() -> None:
        backward()


def test_the_decorator_keeps_what_the_function_is() -> None:
    assert (Trainer.step.__name__, Trainer.step.__doc__) == ("step", "Runs a backward.")
    trainer = Trainer()
    assert (trainer.step(twice=True), trainer.calls, Trainer.shared()) == ("done", 2, "Trainer")
    Trainer.alone()
    backward()
    functions: list[Any] = [Trainer.step, Trainer.shared, Trainer.alone]
    counts = [function.session.stats for function in functions]
    assert [one.captures + one.replays for one in counts] == [2, 1, 1]


def test_a_decorated_function_that_raises_restores() -> None:
    @backbind.capture
    def fails() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match=r"^no$"):
        fails()
    assert not backbind.is_enabled()


def _generator() -> Iterator[int]:
    yield 1


async def _coroutine() -> None:
    await asyncio.sleep(0)


async def _async_generator() -> Any:
    yield 1


@pytest.mark.parametrize("function", [_generator, _coroutine, _async_generator])
@pytest.mark.parametrize("decorate", [backbind.capture, backbind.capture()], ids=["bare", "called"])
def test_what_stops_and_goes_on_is_refused(function: Callable[[], Any], decorate: Any) -> None:
    with pytest.raises(TypeError) as raised:
        decorate(function)
    assert str(raised.value) == (
        f"capture() cannot decorate {function.__name__}(), which stops and goes on while others run; "
        "enter capture() around the backward inside it"
    )


@pytest.mark.parametrize("wrong", ["inductor", 3, None])
def test_a_backend_by_position_is_refused_at_once(wrong: Any) -> None:
    if wrong is None:
        assert isinstance(backbind.capture(None), backbind._capture.Capture)
        return
    with pytest.raises(TypeError):
        backbind.capture(wrong)


@pytest.mark.parametrize("start", [backbind.capture, backbind.enable])
def test_an_unknown_backend(start: Callable[..., object]) -> None:
    with pytest.raises(ValueError) as raised:
        start(backend="inducter")
    assert str(raised.value) == (
        "no backend is called 'inducter', did you mean 'inductor'?; backbind.backends() lists them"
    )
    assert not backbind.is_enabled()


def test_enable_holds_until_disable_and_in_every_thread() -> None:
    assert not backbind.is_enabled()
    session = backbind.enable()
    assert backbind.is_enabled()
    backward()
    thread = threading.Thread(target=backward)
    thread.start()
    thread.join()
    with backbind.capture() as inner:
        backward()
    backbind.disable()
    assert not backbind.is_enabled()
    backward()
    assert (session.stats.captures, session.stats.replays) == (1, 1)
    assert (inner.stats.captures, inner.stats.replays) == (0, 1)


def test_enabling_again_begins_a_new_session() -> None:
    first = backbind.enable()
    backward()
    second = backbind.enable()
    backward()
    backbind.disable()
    backbind.disable()
    assert [first.stats.captures, first.stats.replays, second.stats.replays] == [1, 0, 1]
    assert not backbind.is_enabled()


def test_disable_does_not_reach_into_a_context() -> None:
    backbind.enable()
    with backbind.capture() as session:
        backbind.disable()
        assert backbind.is_enabled()
        backward()
    assert session.stats.captures == 1
    assert not backbind.is_enabled()


def test_reset_forgets_plans_and_zeroes_the_process() -> None:
    with backbind.capture() as session:
        backward()
        backbind.reset()
        assert not any(dataclasses.astuple(backbind.stats()))
        backward()
    assert (session.stats.captures, session.stats.replays, backbind.stats().captures) == (2, 0, 1)


class Opaque(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad


def test_stats_as_text() -> None:
    with backbind.capture() as session:
        backward()
        backward()
        leaf().cos().sum().backward()
        (apply(Opaque, leaf()) * apply(Opaque, leaf())).sum().backward()
    assert repr(session) == (
        "<backbind session, backend 'native': "
        "3 captures, 1 replays, 15 steps, 3 plans held, 0 left to the engine>"
    )
    left = replace(session.stats, fallbacks=1, fallback_reasons={"a backward inside too many others": 1})
    assert str(left) == (
        "3 captures, 1 replays, 15 steps, 3 plans held, 1 left to the engine\n"
        "  left to the engine because of a backward inside too many others: 1\n"
        "  opaque step OpaqueBackward: 2\n"
        "  slow path because of a function of Python or C++, or another node that is not one of torch's operators: "
        "torch.autograd.Function 2\n"
        "  slow path because of a gradient that its leaf cannot have as it is: AccumulateGrad 2"
    )


def test_stats_of_graphs_as_text() -> None:
    with backbind.capture(backend="graph") as session:
        for size in (2, 3):
            torch.ones(size, requires_grad=True).sum().backward()
        with torch.autograd.set_detect_anomaly(True):
            backward()
    assert str(session.stats) == (
        "2 captures, 1 replays, 7 steps, 2 plans held, 0 left to the engine, 2 graphs compiled\n"
        "  recaptured: step 1: SinBackward0 where AccumulateGrad was: 1\n"
        "  compiled again: size 0 of argument 'self_sym_sizes' of SumBackward0 changed 2 -> 3: made dynamic: 1\n"
        "  run natively because of anomaly mode, which checks what each node computes: 1"
    )


def test_what_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="backbind")
    with backbind.capture():
        backward()
        backward()
        leaf().cos().sum().backward()
        leaf().cos().cos().sum().backward()
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("backbind.capture", "INFO", "captured: 3 steps"),
        ("backbind.capture", "INFO", "captured: 3 steps"),
        ("backbind.capture", "INFO", "recaptured: 4 steps; step 2: CosBackward0 where AccumulateGrad was"),
    ]


def test_a_logger_that_fails_hurts_no_backward(capsys: pytest.CaptureFixture[str]) -> None:
    class Fails(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 (logging's signature)
            raise RuntimeError("the log is full")

    logger, handler = logging.getLogger("backbind.capture"), Fails()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    unraisable: list[str] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda found: unraisable.append(str(found.exc_value))
    try:
        x = leaf()
        with backbind.capture():
            (x * 2).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [2.0, 2.0, 2.0]
    finally:
        sys.unraisablehook = before
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert unraisable == ["the log is full"]


@pytest.mark.slow
def test_torchs_own_switch_for_logs_works() -> None:
    program = (
        "import torch, backbind\n"
        "with backbind.capture(): torch.ones(3, requires_grad=True).sin().sum().backward()\n"
    )
    done = run_python("-c", program, env={"TORCH_LOGS": "backbind"})
    assert "captured: 3 steps" in done.stderr
