"""Several threads in and out of capture at once, and a process that forks."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Callable
from typing import Any

import backbind
import pytest
import torch

from tests.processes import run_python
from tests.replay.differential import Run, assert_same_as_eager


def together(*bodies: Callable[[], Any]) -> list[Any]:
    """Runs each body in a thread of its own, all at once; what they return, or the first exception."""
    results: list[Any] = [None] * len(bodies)
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(bodies))

    def run(i: int) -> None:
        try:
            barrier.wait()
            results[i] = bodies[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def train(
    seed: int, steps: int = 20, hook: Callable[[torch.Tensor], Any] | None = None
) -> list[torch.Tensor]:
    """The gradients of every step of a small model, whose graph is another for each seed."""
    generator = torch.Generator().manual_seed(seed)
    w = torch.randn(4, 4, generator=generator, requires_grad=True)
    grads = []
    for _ in range(steps):
        value = torch.ones(3, 4) @ w
        for i in range(seed + 2):
            value = value.tanh() if (seed >> i) & 1 else value.sin() * w.sum()
        if hook is not None:
            value.register_hook(hook)
        value.sum().backward()
        assert w.grad is not None
        grads.append(w.grad.clone())
        w.grad = None
    return grads


def captured(seed: int, **keywords: Any) -> tuple[list[torch.Tensor], backbind._capture.Stats]:
    with backbind.capture() as session:
        grads = train(seed, **keywords)
    return grads, session.stats


def same(left: Any, right: Any) -> bool:
    return len(left) == len(right) and all(map(torch.equal, left, right))


@pytest.mark.parametrize("same_graph", [False, True])
def test_threads_in_and_out_of_capture(same_graph: bool) -> None:
    seeds = [3] * 6 if same_graph else list(range(6))
    reference = [train(seed) for seed in seeds]
    bodies: list[Callable[[], Any]] = [
        (lambda seed=seed: captured(seed)) if i % 2 else (lambda seed=seed: (train(seed), None))  # type: ignore[misc]
        for i, seed in enumerate(seeds)
    ]
    for expected, (grads, stats) in zip(reference, together(*bodies), strict=True):
        assert same(grads, expected)
        assert stats is None or (stats.captures + stats.replays, stats.fallbacks) == (20, 0)
    assert backbind.stats().captures + backbind.stats().replays == 60


def test_enable_reaches_threads_that_already_run() -> None:
    begin, go = threading.Event(), threading.Event()
    grads: list[Any] = []

    def body() -> None:
        begin.set()
        go.wait()
        grads.append(train(2))

    thread = threading.Thread(target=body)
    thread.start()
    begin.wait()
    session = backbind.enable()
    go.set()
    thread.join()
    backbind.disable()
    assert same(grads[0], train(2))
    assert session.stats.captures + session.stats.replays == 20


def test_one_context_entered_by_two_threads_restores_each() -> None:
    shared, mine = backbind.capture(), backbind.capture()
    entered, may_leave = threading.Event(), threading.Event()

    def other() -> None:
        with shared:
            entered.set()
            may_leave.wait()
        train(1, steps=1)  # outside every context

    thread = threading.Thread(target=other)
    with mine:
        with shared:
            thread.start()
            entered.wait()
        train(1, steps=1)  # inside `mine` again
        counted = mine.session.stats
        may_leave.set()
        thread.join()
    assert counted.captures + counted.replays == 1
    assert mine.session.stats == counted
    assert shared.session.stats.captures + shared.session.stats.replays == 0


def test_a_decorated_function_in_several_threads() -> None:
    step = backbind.capture(train)
    reference = [train(seed) for seed in range(4)]
    results = together(*(lambda seed=seed: step(seed) for seed in range(4)))
    assert all(map(same, results, reference))
    stats = step.session.stats  # type: ignore[attr-defined]
    assert stats.captures + stats.replays == 80


def test_backwards_inside_backwards_in_several_threads() -> None:
    def hook(grad: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            return grad + train(1, steps=2)[1].sum()

    reference = [train(seed, hook=hook) for seed in range(4)]
    bodies = [lambda seed=seed: captured(seed, hook=hook) for seed in range(4)]
    for expected, (grads, stats) in zip(reference, together(*bodies), strict=True):
        assert same(grads, expected)
        assert stats.captures + stats.replays == 60


def test_a_thread_inside_a_backward_and_one_that_begins_to_capture() -> None:
    inside, go = threading.Event(), threading.Event()

    def hook(grad: torch.Tensor) -> None:
        inside.set()
        go.wait()

    def second() -> Any:
        inside.wait()
        try:
            return captured(3)
        finally:
            go.set()

    reference = train(1), train(3)
    first, (grads, stats) = together(lambda: train(1, hook=hook), second)
    assert same(first, reference[0])
    assert same(grads, reference[1])
    assert stats.captures + stats.replays == 20


def test_entering_and_leaving_while_another_thread_runs_plain_backwards() -> None:
    stop = threading.Event()
    counts = [0, 0]

    def plain() -> None:
        reference = train(2, steps=1)
        while not stop.is_set():
            assert same(train(2, steps=1), reference)
            counts[0] += 1

    def enters() -> None:
        reference = train(2, steps=1)
        try:
            for i in range(300):
                with backbind.capture():
                    assert same(train(2, steps=1), reference)
                if i % 50 == 0:
                    backbind.reset()
                counts[1] += 1
        finally:
            stop.set()

    together(plain, enters)
    assert counts[1] == 300
    assert counts[0] > 0


def test_one_graph_from_forwards_in_several_threads() -> None:
    def scenario(run: Run) -> object:
        leaves = [torch.full((3,), float(i), requires_grad=True) for i in range(3)]
        parts: list[Any] = [None] * 3

        def forward(i: int) -> None:
            parts[i] = (leaves[i].sin() * leaves[(i + 1) % 3]).cos()
            parts[i].register_hook(lambda grad: run.note(i, grad))

        for i in range(3):
            thread = threading.Thread(target=forward, args=(i,))
            thread.start()
            thread.join()
        for i, x in enumerate(leaves):
            x.register_hook(lambda grad, i=i: run.note("leaf", i, grad))
        with run.backward():
            (parts[0] * parts[1] + parts[2]).sum().backward()
        return [x.grad for x in leaves]

    # Each thread counts its sequence numbers for itself; how they rank repeats.
    assert_same_as_eager(scenario)


def test_two_threads_run_one_kept_graph() -> None:
    def scenario(run: Run) -> object:
        x = torch.ones(3, requires_grad=True)
        loss = (x.exp() * x).sum()

        def body() -> Any:
            out: list[torch.Tensor] = []
            with run.backward():
                for _ in range(50):
                    out += torch.autograd.grad(loss, x, retain_graph=True)
            return out

        return together(body, body, body)

    assert_same_as_eager(scenario)


def in_a_process(program: str, seconds: float = 60) -> str:
    """What a program printed; fails when it dies or hangs, which a deadlock would make it do, also at its exit."""
    return run_python("-c", textwrap.dedent(program), timeout=seconds).stdout


# Not among them: a backward. Setting a thread's modes, torch takes a lock that it does not hold over a fork, captured
# or not, so a child of a process that is inside a backward may wait forever.
WORK_OF_THE_OTHER_THREAD = {
    "none": "break",
    "reading stats": "session.stats; backbind.stats()",
    "entering": "backbind.capture().__enter__(); backbind.enable(); backbind.disable()",
}


@pytest.mark.slow
@pytest.mark.parametrize("others", WORK_OF_THE_OTHER_THREAD)
def test_a_process_that_forks(others: str) -> None:
    assert (
        in_a_process(
            f"""
        import os, signal, threading, torch, backbind, warnings
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)

        class Function(torch.autograd.Function):
            forward = staticmethod(lambda ctx, x: x.clone())
            backward = staticmethod(lambda ctx, grad: grad)

        def backward(n=1, function=lambda y: y):
            x = torch.ones(3, requires_grad=True)
            y = x
            for _ in range(n): y = function(y.sin())
            y.sum().backward()

        stop = threading.Event()
        def other():
            with backbind.capture() as session:
                i = 0
                while not stop.is_set():
                    i += 1
                    {WORK_OF_THE_OTHER_THREAD[others]}
        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        with backbind.capture():
            backward()
            for _ in range(100):
                child = os.fork()
                if child == 0:
                    signal.alarm(10)  # ends a child that hangs
                    backward(3, Function.apply)
                    backward(3, Function.apply)
                    backbind.stats()
                    os._exit(0 if backbind.stats().replays > 0 else 3)
                assert os.waitpid(child, 0)[1] == 0
        stop.set()
        thread.join()
        print("done")
        """
        )
        == "done\n"
    )


@pytest.mark.slow
def test_reading_stats_while_python_functions_are_captured() -> None:
    assert (
        in_a_process(
            """
        import sys, threading, torch, backbind
        sys.setswitchinterval(1e-4)  # the threads take turns more often, which is what the test is about
        torch.set_num_threads(1)

        class Function(torch.autograd.Function):
            forward = staticmethod(lambda ctx, x: x.clone())
            backward = staticmethod(lambda ctx, grad: grad)

        stop = threading.Event()
        session = backbind.enable()

        def reads():
            while not stop.is_set():
                session.stats
                backbind.stats()

        reader = threading.Thread(target=reads)
        reader.start()
        for step in range(100):
            value = torch.ones(3, requires_grad=True)
            for _ in range(50):
                value = Function.apply(value)
            backbind.reset()
            value.sum().backward()
        stop.set()
        reader.join()
        print(session.stats.captures)
        """,
            seconds=30,
        )
        == "100\n"
    )
