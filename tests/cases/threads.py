"""Backwards of several threads, and of child processes."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import applied, data, grad_of, leaf, take_grad
from tests.processes import expect_end


def _in_threads(*works: Callable[[], object]) -> list[str]:
    """Run them at once; what they raised, in words."""
    errors = [""] * len(works)

    def guarded(at: int, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            errors[at] = f"{type(error).__name__}: {error}"

    threads = [
        threading.Thread(target=guarded, args=(at, work), daemon=True) for at, work in enumerate(works)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return ["hangs" if thread.is_alive() else error for thread, error in zip(threads, errors, strict=True)]


@case(report=PYTORCH + "issues/18333")
def two_threads_two_graphs(run_backward: RunBackward) -> Results:
    """Independent models trained in threads; right: both backwards finish with right gradients while both run."""
    ws = [leaf(16, 16, seed=i) for i in range(2)]
    gate = threading.Barrier(2, timeout=15)

    def meet(gradient: Tensor) -> None:
        gate.wait()

    def work(at: int) -> None:
        loss = (data(8, 16, seed=at) @ ws[at]).tanh().sum()
        loss.register_hook(meet)  # from here on both threads are inside a backward
        run_backward(loss.backward)

    errors = _in_threads(lambda: work(0), lambda: work(1))
    return {"errors": errors, "ws": [w.grad for w in ws]}


@case()
def two_threads_take_turns(run_backward: RunBackward) -> Results:
    """Two threads that run backwards in strict turns, each with two graph shapes, one begun by the other's hook."""
    turn = [threading.Semaphore(1), threading.Semaphore(0)]
    ws = [leaf(4, 4, seed=i) for i in range(2)]
    out: list[list[Tensor]] = [[], []]

    def work(at: int) -> None:
        for step in range(12):
            assert turn[at].acquire(timeout=15)
            h = data(1 + step % 3, 4, seed=step) @ ws[at]
            loss = h.sin().sum() if (step + at) % 2 else (h * h).tanh().sum()
            h.register_hook(lambda g: turn[1 - at].release())
            run_backward(loss.backward)
            out[at].append(take_grad(ws[at]))

    errors = _in_threads(lambda: work(0), lambda: work(1))
    return {"errors": errors, "out": out}


@case()
def one_thread_captures_another_does_not(run_backward: RunBackward) -> Results:
    """A thread that runs backwards plainly while another one's are captured, and starts while that is inside one."""
    gate = threading.Barrier(2, timeout=15)
    ws = [leaf(4, 4, seed=i) for i in range(2)]

    def meet(gradient: Tensor) -> None:
        gate.wait()

    def work(at: int, run: Callable[[Callable[[], object]], object]) -> None:
        for step in range(10):
            h = data(2, 4, seed=step) @ ws[at]
            h.register_hook(meet)
            run(h.sin().sum().backward)

    errors = _in_threads(lambda: work(0, run_backward), lambda: work(1, lambda action: action()))
    return {"errors": errors, "ws": [w.grad for w in ws]}


@case()
def hook_starts_a_thread(run_backward: RunBackward) -> Results:
    """A hook starts a thread that runs a backward, and waits for it: through the same leaf, and with an error in it."""
    x, inner = leaf(3, seed=1), leaf(3, seed=2)
    errors: list[str] = []
    modes: list[bool] = []

    def other() -> None:
        modes.append(torch.is_grad_enabled())
        (inner * x).sum().backward()
        (inner.exp() * 2).sum().backward()
        (inner * 2).backward()

    h = x * 2
    h.register_hook(lambda g: errors.extend(_in_threads(other)))
    run_backward(h.sin().sum().backward)
    return {"errors": errors, "modes": modes, "x": x.grad, "inner": inner.grad}


@case()
def graph_of_one_thread_run_by_another(run_backward: RunBackward) -> Results:
    """Graphs that are made in one thread, half in each, and run in another."""
    w = leaf(3, 3, seed=1)
    made: list[Tensor] = []
    out: list[Tensor] = []

    def forward() -> None:
        made.append((data(2, 3, seed=len(made)) @ w).sin())

    def backward() -> None:
        run_backward(made[-1].exp().sum().backward)
        out.append(take_grad(w))

    errors = []
    for _ in range(3):
        errors += _in_threads(forward)
        errors += _in_threads(backward)
    run_backward((made[0].detach() * w[:2]).sum().backward)
    return {"errors": errors, "out": out, "w": w.grad}


@case()
def threads_share_leaves(run_backward: RunBackward) -> Results:
    """Four threads that accumulate into the same leaves at once; whole numbers, so that no order shows."""
    w = torch.arange(12.0).reshape(3, 4).requires_grad_()
    start = threading.Barrier(4, timeout=15)

    def work() -> None:
        start.wait()
        for step in range(25):
            run_backward((w * float(step % 3 + 1)).sum().backward)

    errors = _in_threads(work, work, work, work)
    return {"errors": errors, "w": w.grad}


@case()
def threads_share_a_kept_graph(run_backward: RunBackward) -> Results:
    """Three threads that run one kept graph at once, through a function and a hook."""
    log: list[str] = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> Tensor:
            ctx.save_for_backward(t)
            return t * 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            result: Tensor = gradient * 2 + 0 * ctx.saved_tensors[0]
            return result

    x = torch.arange(4.0).requires_grad_()
    h = applied(Double, x * 3)
    h.register_hook(lambda g: log.append("hook"))
    loss = h.sum()

    def work() -> None:
        for _ in range(10):
            run_backward(lambda: loss.backward(retain_graph=True))

    errors = _in_threads(work, work, work)
    return {"errors": errors, "hooks": len(log), "x": x.grad}


def _child(run: Callable[[], list[float]], sender: Any) -> None:
    sender.send(run())


@case()
def fork_after_backwards(run_backward: RunBackward) -> Results:
    """A process that has run backwards forks; the child runs the same and another graph, and so does the parent."""
    x = leaf(3, seed=1)

    def step(power: int) -> list[float]:
        x.grad = None
        run_backward(x.sin().pow(power).sum().backward)
        return [float(number) for number in grad_of(x)]

    out = [step(2), step(2)]
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def in_child() -> list[float]:
        return [*step(2), *step(3), *step(2)]

    process = context.Process(target=_child, args=(in_child, sender))
    process.start()
    answered = receiver.poll(20)
    if answered:
        out.append(receiver.recv())
    expect_end(process, "the fork answered" if answered else "no answer", 20)
    out.append(step(3))
    return {"answered": answered, "out": out}
