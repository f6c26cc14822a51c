"""Functions and hooks written in C++, of which Python knows nothing; extension.cpp has them."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import leaf, noting, raised_by, take_grad


@case(report=PYTORCH + "issues/130170", max_captures=2, needs_extension=True)
def cpp_function_saved_scalars(run_backward: RunBackward) -> Results:
    """Numbers in a C++ function's saved_data were specialised on, so each value recompiled.

    Right: new values give new gradients without new captures.
    """
    x = leaf(4, seed=5)
    out = []
    for gain, power in ((0.5, 2), (1.5, 3), (2.5, 2), (3.5, 4)):
        run_backward(torch.ops.backbind_cases.gain(x, gain, power, power == 3).sum().backward)
        out.append(take_grad(x))
    return {"out": out}


@case(report=PYTORCH + "issues/136309", needs_extension=True)
def cpp_tensor_hook(run_backward: RunBackward) -> Results:
    """A C++ tensor hook raised 'compiled_args nyi'; right: it runs in its place among the Python hooks."""
    log: list[float] = []
    x = leaf(4, seed=7)
    h = x.tanh()

    def note(gradient: Tensor) -> None:
        log.append(gradient.sum().item())

    h.register_hook(note)
    torch.ops.backbind_cases.scale_gradient(h, 10.0)
    h.register_hook(note)
    torch.ops.backbind_cases.scale_gradient(h, 3.0)
    torch.ops.backbind_cases.scale_gradient(x, -1.0)
    x.register_hook(note)
    run_backward(h.sum().backward)
    return {"log": log, "x": x.grad}


@case(needs_extension=True)
def backward_called_from_cpp(run_backward: RunBackward) -> Results:
    """libtorch's own backward(), of a graph with Python hooks and functions, and one that fails."""
    log: list[str] = []
    x = leaf(4, seed=7)
    h = x.sin()
    h.register_hook(noting(log, "hook", lambda g: g * 2))
    x.register_post_accumulate_grad_hook(noting(log, "accumulated"))
    loss = h.pow(2).sum()
    run_backward(lambda: torch.ops.backbind_cases.backward(loss))
    results = raised_by(run_backward, lambda: torch.ops.backbind_cases.backward(loss), "second time")
    return {**results, "log": log, "x": x.grad}


@case(needs_extension=True)
def cpp_function_raises(run_backward: RunBackward) -> Results:
    """An error of a C++ function has its type and its words; the next backward works."""
    x = leaf(4, seed=7)
    h = torch.ops.backbind_cases.thrower(x.sin())
    results = raised_by(run_backward, h.sum().backward, "no gradient of size 4")
    run_backward(x.sin().sum().backward)
    return {**results, "x": x.grad}


@case(needs_extension=True)
def warnings_of_cpp_backwards(run_backward: RunBackward) -> Results:
    """Warnings that nodes give while they run, in their place among hooks, and turned into errors."""
    log: list[str] = []
    x = leaf(4, seed=7)
    results: Results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *rest: log.append(f"{category.__name__}: {message}")
        h = torch.ops.backbind_cases.warner(x.sin(), "first")
        h = torch.ops.backbind_cases.warner(h * 2, "second")
        h.register_hook(noting(log, "hook h"))
        x.register_hook(noting(log, "hook x"))
        run_backward(h.sum().backward)
        log.append("after")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = torch.ops.backbind_cases.warner(x.exp(), "third").sum()
        results = raised_by(run_backward, again.backward)
    return {**results, "log": log, "x": x.grad}
