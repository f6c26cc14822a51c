"""Errors in hooks, in nested backwards, in what is asked for: eager's words, and a process that goes on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tests.cases.registry import Results, RunBackward, case
from tests.cases.values import data, leaf, node_of, noting, raised_by


@case()
def every_hook_raises_in_turn(run_backward: RunBackward) -> Results:
    """An error from each kind of hook and from a final callback: what ran before it counts, and the next one works."""
    log: list[str] = []

    class HookError(Exception):
        pass

    def refuse(*_: object) -> None:
        raise HookError("refused")

    def queue(gradient: Tensor) -> None:
        torch.autograd.Variable._execution_engine.queue_callback(refuse)

    results: Results = {}
    places: dict[str, Callable[[Tensor, Tensor], object]] = {
        "tensor": lambda x, h: h.register_hook(refuse),
        "node pre": lambda x, h: node_of(h).register_prehook(refuse),
        "node post": lambda x, h: node_of(h).register_hook(refuse),
        "leaf": lambda x, h: x.register_hook(refuse),
        "accumulator pre": lambda x, h: node_of(x).register_prehook(refuse),
        "accumulator post": lambda x, h: node_of(x).register_hook(refuse),
        "accumulated": lambda x, h: x.register_post_accumulate_grad_hook(refuse),
        "final": lambda x, h: h.register_hook(queue),
    }
    for place, register in places.items():
        x, w = leaf(3, seed=1), leaf(3, seed=2)
        h = x.sin()
        loss = (h * w).sum()
        loss.register_hook(noting(log, f"{place}: loss"))
        register(x, h)
        h.register_hook(noting(log, f"{place}: h"))
        x.register_hook(noting(log, f"{place}: x"))
        results[place] = raised_by(run_backward, loss.backward, "refused")
        results[f"{place}: gradients"] = (x.grad, w.grad)
        fresh = leaf(3, seed=3)
        run_backward((fresh.sin() * w.detach()).sum().backward)
        results[f"{place}: after"] = fresh.grad
    return {**results, "log": log}


@case()
def error_inside_nested_backward(run_backward: RunBackward) -> Results:
    """An error in a backward inside a hook: caught there, or let through to the outer caller."""
    log: list[str] = []
    x, inner = leaf(3, seed=1), leaf(3, seed=2)

    def failing() -> None:
        with torch.enable_grad():
            y = (inner * 2).exp()

            def refuse(gradient: Tensor) -> None:
                raise KeyError("inner")

            y.register_hook(refuse)
            y.sum().backward()

    def caught(gradient: Tensor) -> None:
        try:
            failing()
        except KeyError as error:
            log.append(f"caught {error}")

    h = x.sin()
    handle = h.register_hook(caught)
    run_backward(h.sum().backward)
    log.append(f"x {x.grad is not None}")
    handle.remove()
    x.grad = None
    h = x.sin()
    h.register_hook(lambda g: failing())
    try:
        run_backward(h.sum().backward)
    except KeyError as error:
        log.append(f"outer {error}")
    first = x.grad
    run_backward(x.sin().sum().backward)
    return {"log": log, "first": first, "x": x.grad, "inner": inner.grad}


@case()
def wrong_requests(run_backward: RunBackward) -> Results:
    """Requests that torch refuses before or while it runs: gradients of wrong sizes, dtypes, numbers, unknown roots."""
    x = leaf(3, 2, seed=1)
    y = x * 2
    z = x.argmax(1)
    wrong: dict[str, Callable[[], object]] = {
        "not scalar": y.backward,
        "size": lambda: y.backward(torch.ones(2)),
        "broadcast": lambda: y.backward(torch.ones(3, 1), retain_graph=True),
        "integer": lambda: z.backward(torch.ones(3)),
        "no grad": lambda: x.detach().backward(torch.ones(3, 2)),
        "complex gradient": lambda: y.backward(torch.ones(3, 2, dtype=torch.complex64), retain_graph=True),
        "double gradient": lambda: (
            y.backward(torch.ones(3, 2, dtype=torch.float64), retain_graph=True) or "fine"
        ),
        "too many": lambda: torch.autograd.backward([y], [torch.ones(3, 2)] * 2, True),
        "none": lambda: torch.autograd.grad([y], [x], [None]),
        "inputs": lambda: torch.autograd.backward([y], [torch.ones(3, 2)], inputs=[]),
        "input without grad": lambda: y.backward(torch.ones(3, 2), True, inputs=[torch.ones(1)]),
    }
    results: Results = {name: raised_by(run_backward, action) for name, action in wrong.items()}
    run_backward(lambda: y.backward(torch.ones(3, 2)))
    return {**results, "x": x.grad}


@case()
def interrupted_then_same_graph(run_backward: RunBackward) -> Results:
    """A kept graph whose backward was interrupted at each of its hooks in turn, then runs whole."""
    x, w = leaf(3, seed=1), leaf(3, seed=2)
    hs = [x * w]
    for _ in range(4):
        hs.append((hs[-1].sin() + hs[0]) * w)
    out: list[object] = []
    stop_at = [0]

    def stop(at: int) -> Callable[[Tensor], None]:
        def hook(gradient: Tensor) -> None:
            if at == stop_at[0]:
                raise KeyboardInterrupt(f"at {at}")

        return hook

    for at, h in enumerate(hs):
        h.register_hook(stop(at))
    loss = (hs[-1] * data(3, seed=3)).sum()
    for at in (4, 2, 0, 1, 3, 9):
        stop_at[0] = at
        try:
            run_backward(lambda: loss.backward(retain_graph=True))
            out.append("whole")
        except KeyboardInterrupt as error:
            out.append(str(error))
        out += [x.grad, w.grad]
        x.grad = w.grad = None
    return {"out": out}
