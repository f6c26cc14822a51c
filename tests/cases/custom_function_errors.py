"""torch.autograd.Function whose backward does what it must not: eager's error, and a process that goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.cases.registry import Results, RunBackward, case
from tests.cases.values import applied, data, leaf, noting, raised_by, take_grad


def _returning(answer: Callable[[Tensor], Any]) -> Any:
    class Answering(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
            return a * b

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            return answer(gradient)

    return Answering


@case()
def function_returns_what_it_must_not(run_backward: RunBackward) -> Results:
    """Too many and too few gradients, other sizes, dtypes and types, a gradient for what is no tensor."""
    answers: dict[str, Callable[[Tensor], Any]] = {
        "too many": lambda g: (g, g, g),
        "too many, but None": lambda g: (g, g, None, None),
        "too few": lambda g: g,
        "size": lambda g: (g, torch.ones(2, 5)),
        "more dimensions": lambda g: (g, torch.ones(7, 4, 3)),
        "double": lambda g: (g.double(), g),
        "integer": lambda g: (g, torch.ones(4, 3, dtype=torch.int64)),
        "complex": lambda g: (g, g.to(torch.complex64) * (1 + 1j)),
        "number": lambda g: (g, 1.0),
        "list": lambda g: [g, g],
        "none at all": lambda g: None,
        "sparse": lambda g: (g, g.to_sparse()),
        "inference": lambda g: (g, _in_inference_mode(g)),
    }
    results: Results = {}
    for name, answer in answers.items():
        a, b = leaf(4, 3, seed=1), leaf(4, 3, seed=2)
        loss = _returning(answer).apply(a * 1.0, b * 1.0).sum()
        results[name] = raised_by(run_backward, loss.backward)
        results[f"{name}: gradients"] = (a.grad, b.grad)
    return results


def _in_inference_mode(gradient: Tensor) -> Tensor:
    with torch.inference_mode():
        return gradient * 2


@case()
def function_raises(run_backward: RunBackward) -> Results:
    """An error of one's own class comes out as it is; what ran before it has its effect, the next one works."""
    log: list[str] = []

    class OwnError(ValueError):
        pass

    thrown: list[OwnError] = []
    do_raise = [True]

    def answer(gradient: Tensor) -> Any:
        if do_raise[0]:
            thrown.append(OwnError("not today", 3))
            raise thrown[-1]
        return gradient, gradient * 2

    function = _returning(answer)
    results: Results = {}
    ran, never = leaf(3, seed=1), leaf(3, seed=2)
    for step in range(3):
        do_raise[0] = step != 1
        h = applied(function, never * 1.0, data(3, seed=3))
        loss = (h + ran).sum()
        loss.register_hook(noting(log, f"{step} loss"))
        h.register_hook(noting(log, f"{step} h"))
        never.register_hook(noting(log, f"{step} never"))
        try:
            run_backward(loss.backward)
        except ValueError as error:
            frames = []
            trace = error.__traceback__
            while trace is not None:
                frames.append(trace.tb_frame.f_code.co_name)
                trace = trace.tb_next
            results[f"error {step}"] = (type(error).__name__, error.args, error is thrown[-1], frames[-1])
        results[f"gradients {step}"] = (ran.grad, never.grad)
        ran.grad = never.grad = None
    return {**results, "log": log}


@case()
def function_interrupted(run_backward: RunBackward) -> Results:
    """What is raised may be no Exception: an interrupt, an exit, a generator's end."""
    results: Results = {}
    for kind in (KeyboardInterrupt, SystemExit, StopIteration, GeneratorExit):

        def answer(gradient: Tensor, kind: type[BaseException] = kind) -> Any:
            raise kind("stop it")

        x = leaf(3, seed=1)
        loss = _returning(answer).apply(x, x * 2.0).sum()
        try:
            run_backward(loss.backward)
        except BaseException as error:
            results[kind.__name__] = (type(error).__name__, str(error), x.grad)
        run_backward((x * 3).sum().backward)
        results[f"after {kind.__name__}"] = take_grad(x)
    return results


@case()
def function_uses_freed_tensors(run_backward: RunBackward) -> Results:
    """A function's saved tensors are asked for a second time after they were freed, in and outside of a backward."""
    contexts: list[Any] = []

    class Saving(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> Tensor:
            ctx.save_for_backward(t)
            contexts.append(ctx)
            return t * 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            return gradient * ctx.saved_tensors[0]

    x = leaf(3, seed=1)
    loss = applied(Saving, x.clone()).sum()
    run_backward(lambda: loss.backward(retain_graph=True))
    kept = contexts[0].saved_tensors[0]
    run_backward(loss.backward)
    results = raised_by(run_backward, loss.backward, "second time")
    outside = raised_by(lambda action: action(), lambda: contexts[0].saved_tensors)
    return {**results, "outside": outside, "kept": kept, "x": x.grad}


@case()
def function_leaves_modes_behind(run_backward: RunBackward) -> Results:
    """A backward that switches grad mode and autocast and does not switch them back: the next node sees none of it."""
    log: list[str] = []

    def note(place: str) -> None:
        log.append(f"{place} {torch.is_grad_enabled()} {torch.is_autocast_enabled('cpu')}")

    def answer(gradient: Tensor) -> Any:
        note("function")
        torch.set_grad_enabled(True)
        torch.set_autocast_enabled("cpu", True)
        return gradient * 2, gradient * 3

    x, y = leaf(3, seed=1), leaf(3, seed=2)
    h = _returning(answer).apply(x.sin(), y.sin())
    x.register_hook(lambda g: note("x"))
    y.register_hook(lambda g: note("y"))
    run_backward(h.sum().backward)
    note("after")
    torch.set_grad_enabled(True)
    torch.set_autocast_enabled("cpu", False)
    return {"log": log, "x": x.grad, "y": y.grad}
