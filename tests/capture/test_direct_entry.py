"""Backwards that Python asks for are handed over before the engine walks their graph, and nobody can tell."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import backbind
import pytest
import torch
import torch._dynamo.compiled_autograd as stock
from torch import Tensor

from tests.replay.differential import Expected, Run, assert_same_as_eager

_private: Any = torch._C


def _leaf(*shape: int) -> Tensor:
    return torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape).requires_grad_()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """For each backward that came to the entry whether it was run from there."""
    with backbind.capture():
        pass  # which installs it
    engine: Any = torch.autograd.Variable._execution_engine
    given: list[bool] = []
    run = engine._run

    def recorded(*arguments: object) -> bool:
        given.append(run(*arguments))
        return given[-1]

    monkeypatch.setattr(engine, "_run", recorded)
    yield given


class _Subclass(Tensor):
    pass


class _StopError(Exception):
    pass


def _two_roots() -> None:
    x = _leaf(3)
    torch.autograd.backward([x.sin().sum(), x.exp()], [torch.ones(()), torch.ones(3)])


def _twice() -> None:
    loss = _leaf(3).sin().sum()
    loss.backward(retain_graph=True)
    loss.backward()


def _with_a_hook() -> None:
    x = _leaf(3)
    x.register_hook(lambda gradient: gradient * 2)
    x.sin().sum().backward()


def _failing() -> None:
    def stop(gradient: Tensor) -> None:
        raise _StopError

    value = _leaf(3).sin()
    value.register_hook(stop)
    with pytest.raises(_StopError):
        value.sum().backward()


def _inputs() -> None:
    x = _leaf(3)
    x.sin().sum().backward(inputs=[x])


def _returned() -> None:
    x = _leaf(3)
    torch.autograd.grad(x.sin().sum(), x)


def _twice_differentiable() -> None:
    _leaf(3).sin().sum().backward(create_graph=True)


def _of_a_subclass() -> None:
    loss: Any = _leaf(3).sin().sum().as_subclass(_Subclass)
    loss.backward()


def _sparse_gradient() -> None:
    _leaf(3).sin().backward(torch.ones(3).to_sparse())


def _gradient_edge() -> None:
    loss = _leaf(3).sin().sum()
    torch.autograd.backward(torch.autograd.graph.get_gradient_edge(loss), torch.ones(()))


def _gradient_of_another_dtype() -> None:
    x = _leaf(3)
    x.sin().backward(torch.ones(3, dtype=torch.float64))


def _anomaly_mode() -> None:
    with torch.autograd.set_detect_anomaly(True):
        _leaf(3).sin().sum().backward()


def _a_leaf() -> None:
    _leaf(3).backward(torch.ones(3))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (_two_roots, [True]),
        (_twice, [True, True]),
        (_with_a_hook, [True]),
        (_a_leaf, [True]),
        (_inputs, []),
        (_returned, []),
        (_twice_differentiable, []),
        (_of_a_subclass, [False]),
        (_sparse_gradient, [False]),
        (_gradient_edge, [False]),
        (_gradient_of_another_dtype, [False]),
        (_anomaly_mode, [False]),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_which_backwards_enter_directly(
    program: Callable[[], None], expected: list[bool], answers: list[bool]
) -> None:
    for _ in range(2):
        with backbind.capture() as session:
            program()
        stats = session.stats
        assert answers == expected
        assert stats.captures + stats.replays + stats.fallbacks == (len(expected) or 1)
        answers.clear()


def test_a_failing_backward_enters_directly(answers: list[bool]) -> None:
    with backbind.capture():
        _failing()
        _twice()
    assert answers[-2:] == [True, True]


def test_outside_of_a_session_the_engine_runs(answers: list[bool]) -> None:
    _twice()
    assert answers == [False, False]


@pytest.mark.parametrize("other_thread", [False, True])
def test_under_torchs_compiled_autograd_the_engine_runs(other_thread: bool, answers: list[bool]) -> None:
    def run() -> None:
        with backbind.capture():
            _twice()

    def compiler(graph: Any) -> Any:
        return graph

    with stock._enable(compiler):
        if other_thread:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        else:
            run()
    assert answers == [False, False]
    run()
    assert answers[2:] == [True, True]


def test_another_engine_in_torchs_place_stays() -> None:
    variable: Any = torch.autograd.Variable
    before = variable._execution_engine

    class Own(type(before).__base__):  # type: ignore[misc]
        pass

    own = variable._execution_engine = Own()
    try:
        with backbind.capture() as session:
            _twice()
        assert variable._execution_engine is own
    finally:
        variable._execution_engine = before
    assert session.stats.captures == session.stats.replays == 1


def _asks(run: Run, name: str, nodes: list[Any]) -> None:
    will = [run.attempt(partial(torch._C._will_engine_execute_node, node)) for node in nodes]
    order = run.attempt(_private._current_graph_task_execution_order)
    run.note(name, will, [one.name() for one in order] if isinstance(order, list) else order)
    run.note(torch._C._current_graph_task_id() >= 0)


@pytest.mark.parametrize("hooked", range(5))
@pytest.mark.parametrize("roots", [1, 2])
def test_whoever_asks_for_the_graph_is_told_all_of_it(hooked: int, roots: int) -> None:
    """Also where nobody could ask before the fourth node."""

    def scenario(run: Run) -> object:
        x, other = _leaf(3), _leaf(3)
        values = [x.sin()]
        for _ in range(3):
            values.append(values[-1].exp())
        loss = values[-1].sum()
        stranger = other.cos()
        nodes = [loss.grad_fn, *(one.grad_fn for one in values), stranger.grad_fn]
        targets = [loss, *reversed(values)]
        targets[hooked].register_hook(lambda _: _asks(run, str(hooked), nodes))
        with run.backward(), torch.autograd.set_multithreading_enabled(False):
            torch.autograd.backward([loss, values[1].sum()][:roots])
        return x.grad

    assert_same_as_eager(scenario)


def test_one_sequence_number_is_used_up(answers: list[bool]) -> None:
    """As where the engine hands a backward over itself."""
    used: list[int] = []
    for _ in range(2):
        loss = _leaf(3).sin().sum()
        before = loss.grad_fn._sequence_nr()  # type: ignore[union-attr]
        with backbind.capture():
            loss.backward()
        after = _leaf(3).sin().grad_fn._sequence_nr()  # type: ignore[union-attr]
        used.append(after - before - 1)
    assert used == [1, 1]
    assert answers == [True, True]


def test_threads_that_toggle_torchs_compiled_autograd_disturb_nobody() -> None:
    end = threading.Event()
    errors: list[BaseException] = []

    def toggle() -> None:
        while not end.is_set():
            # torch lets nobody take the hook while another thread is inside a backward.
            with contextlib.suppress(RuntimeError), stock._disable():
                time.sleep(0)

    thread = threading.Thread(target=toggle)
    thread.start()
    x = _leaf(4, 4)
    try:
        with backbind.capture():
            for _ in range(300):
                x.grad = None
                (x @ x).sum().backward()
    except BaseException as error:
        errors.append(error)
    finally:
        end.set()
        thread.join()
    assert errors == []
    assert x.grad is not None


@pytest.mark.parametrize("roots", [1, 2])
def test_deep_inside_other_backwards_the_engine_takes_over(roots: int) -> None:
    """It is then told of the graph that it was not shown."""

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, depth: int) -> Tensor:
            ctx.depth = depth
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            if ctx.depth > 0:
                with torch.enable_grad():
                    inner = gradient.detach().requires_grad_()
                    nested: Any = Nested.apply
                    loss = nested(inner.sin(), ctx.depth - 1).sum()
                    torch.autograd.backward([loss, inner.exp().sum()][:roots])
                assert inner.grad is not None
                gradient = gradient + inner.grad
            return gradient, None

    def scenario(run: Run) -> object:
        x = _leaf(3)
        nested: Any = Nested.apply
        with run.backward():
            nested(x.sin(), 50).sum().backward()
        return x.grad

    assert_same_as_eager(scenario, Expected(fallbacks=("a backward inside too many others",)))


@pytest.mark.parametrize("surround", [contextlib.nullcontext, torch.no_grad, torch.inference_mode])
def test_modes_around_it(surround: Callable[[], AbstractContextManager[object]]) -> None:
    def scenario(run: Run) -> object:
        x = _leaf(3)
        loss = x.sin().sum()
        with run.backward(), surround():
            loss.backward()
        return x.grad

    assert_same_as_eager(scenario)
