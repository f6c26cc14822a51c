"""Which node is being evaluated, as code that runs inside a backward can ask torch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import backbind
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.processes import run_python
from tests.replay.differential import Run, assert_same_as_eager
from tests.replay.test_inside_hooks import WHERE, backward_with, queue_callback
from tests.replay.test_threads import together


def current_node() -> str | None:
    """The name of the node that torch says is being evaluated."""
    node = torch._C._current_autograd_node()
    return None if node is None else node.name()


@pytest.mark.parametrize("where", WHERE)
def test_inside_code_of_the_user(where: str) -> None:
    def scenario(run: Run) -> object:
        def inside() -> None:
            run.note(current_node())

        def callback_and_nested() -> None:
            inside()
            queue_callback(inside)
            with torch.enable_grad():
                x = torch.ones(2, requires_grad=True)
                y = x * 2
                y.register_hook(lambda _: inside())
                y.sum().backward()
            inside()

        result = backward_with(run, where, callback_and_nested)
        inside()
        return result

    assert_same_as_eager(scenario)


class Noting(TorchDispatchMode):
    """Notes each operator, and the node that calls it."""

    def __init__(self, note: Callable[..., None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._note = note

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._note(str(function), current_node())
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("create_graph", [False, True], ids=["plain", "create_graph"])
@pytest.mark.parametrize("is_one_root", [True, False], ids=["one root", "several roots"])
def test_under_a_dispatch_mode(create_graph: bool, is_one_root: bool) -> None:
    """Sums of gradients and reductions of broadcast ones are calls of the node that they come from."""

    def scenario(run: Run) -> object:
        x = torch.full((3,), 0.5, requires_grad=True)
        b = torch.full((1,), 2.0, requires_grad=True)
        y = (x * b).sin() + x
        loss = y.sum()
        roots = [loss] if is_one_root else [loss, (y * b).sum(), loss]
        with run.backward(), Noting(run.note):
            torch.autograd.backward(roots, create_graph=create_graph)
        return x.grad, b.grad

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("where", WHERE)
def test_after_an_error(where: str) -> None:
    def scenario(run: Run) -> object:
        def fail() -> None:
            run.note(current_node())
            raise ValueError("from inside")

        result = backward_with(run, where, fail)
        run.note(current_node())
        return result

    assert_same_as_eager(scenario)


def test_in_several_threads_at_once() -> None:
    names = ("TanhBackward0", "ExpBackward0", "SinBackward0", "CosBackward0")
    functions = (torch.tanh, torch.exp, torch.sin, torch.cos)

    def body(i: int) -> set[str | None]:
        seen: set[str | None] = set()
        with backbind.capture():
            for _ in range(50):
                y = functions[i](torch.ones(2, requires_grad=True))
                y.register_hook(lambda _: seen.add(current_node()))
                y.sum().backward()
        return seen | {current_node()}

    results = together(*(lambda i=i: body(i) for i in range(4)))
    assert results == [{name, None} for name in names]


def test_the_very_node_is_given() -> None:
    y = torch.ones(2, requires_grad=True).exp()
    seen: list[object] = []
    y.register_hook(lambda _: seen.append(torch._C._current_autograd_node()))
    with backbind.capture():
        y.sum().backward()
    assert seen == [y.grad_fn]


def test_capture_may_be_entered_first_in_anomaly_mode() -> None:
    """The node that looks for the place of the current node asks Python for a traceback then."""
    run_python(
        "-c",
        "import torch, backbind\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "with torch.autograd.detect_anomaly(), backbind.capture():\n"
        "    x.exp().sum().backward()\n"
        "seen = []\n"
        "y = x.exp()\n"
        "y.register_hook(lambda _: seen.append(torch._C._current_autograd_node() is y.grad_fn))\n"
        "with backbind.capture():\n"
        "    y.sum().backward()\n"
        "assert seen == [True]\n",
    )


@pytest.fixture
def executed() -> Iterator[list[str]]:
    """What ``TORCH_LOGS=+autograd`` says of the nodes that run."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage().partition(" object at")[0])

    torch._logging._internal.set_logs(autograd=logging.DEBUG)
    log = logging.getLogger("torch.autograd.graph")
    handlers, propagate = log.handlers[:], log.propagate
    log.handlers[:], log.propagate = [Keep()], False
    yield lines
    log.handlers[:], log.propagate = handlers, propagate
    torch._logging._internal.set_logs()


def test_the_autograd_log_names_each_node(executed: list[str]) -> None:
    def run() -> list[str]:
        executed.clear()
        torch.ones(2, requires_grad=True).sin().sum().backward()
        return executed[:]

    expected = run()
    assert [line.partition("<")[2] for line in expected] == ["SumBackward0", "SinBackward0", "AccumulateGrad"]
    with backbind.capture():
        assert run() == expected
        assert run() == expected
