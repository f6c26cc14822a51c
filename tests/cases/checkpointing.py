"""Activation checkpointing, in all its ways."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import leaf, noting, raised_by, take_grad


@case(report=PYTORCH + "issues/106555")
def checkpoint_reentrant(run_backward: RunBackward) -> Results:
    """Reentrant checkpointing hit an internal assert; right: a backward inside a backward works."""
    w, x = leaf(4, 4, seed=8), leaf(2, 4, seed=9)
    h = checkpoint(lambda t: torch.tanh(t @ w), x, use_reentrant=True)
    h = checkpoint(lambda t: torch.sigmoid(t @ w), h, use_reentrant=True)
    run_backward(h.sum().backward)
    return {"w": w.grad, "x": x.grad}


@case()
def checkpoint_reentrant_deep(run_backward: RunBackward) -> Results:
    """A checkpoint inside a checkpoint, more deeply than the engine lets one thread's stack grow."""
    w, x = leaf(3, 3, seed=8), leaf(2, 3, seed=9)

    def level(depth: int, t: Tensor) -> Tensor:
        t = torch.tanh(t @ w)
        if depth == 0:
            return t
        deeper = checkpoint(lambda one: level(depth - 1, one), t, use_reentrant=True)
        assert isinstance(deeper, Tensor)
        return deeper

    run_backward(level(70, x).sum().backward)
    return {"w": w.grad, "x": x.grad}


@case()
def checkpoint_non_reentrant_early_stop(run_backward: RunBackward) -> Results:
    """Recomputation stops as soon as the last saved tensor is there, unless that is switched off."""
    log: list[str] = []
    w = leaf(4, 4, seed=1)

    def block(t: Tensor, step: int) -> Tensor:
        log.append(f"{step} begin")
        t = (t @ w).sin()
        log.append(f"{step} middle")
        t = t.exp()
        log.append(f"{step} end")
        return t + 1

    out = []
    for step in range(4):
        x = leaf(2, 4, seed=step)
        with set_checkpoint_early_stop(step % 2 == 0):
            h = checkpoint(block, x, step, use_reentrant=False)
            h = checkpoint(block, h * 0.1, step, use_reentrant=False)
        h.register_hook(noting(log, f"{step} hook"))
        run_backward(h.sum().backward)
        out += [x.grad, take_grad(w)]
    return {"log": log, "out": out}


@case()
def checkpoint_non_reentrant_nested(run_backward: RunBackward) -> Results:
    """Checkpoints inside checkpoints, with dropout, a keyword argument, and hooks inside the recomputed part."""
    log: list[str] = []
    w = leaf(4, 4, seed=1)

    def inner(t: Tensor, *, gain: float) -> Tensor:
        t = torch.nn.functional.dropout(t @ w, 0.5) * gain
        t.register_hook(noting(log, "inner hook"))
        return t.tanh()

    def outer(t: Tensor) -> Tensor:
        log.append("outer")
        h = checkpoint(inner, t.sin(), use_reentrant=False, gain=1.5)
        again = checkpoint(inner, h, use_reentrant=False, gain=0.5)
        assert isinstance(again, Tensor)
        return again.exp()

    out = []
    for step in range(3):
        x = leaf(2, 4, seed=step)
        run_backward(checkpoint(outer, x, use_reentrant=False).sum().backward)
        out += [x.grad, take_grad(w)]
    return {"log": log, "out": out}


@case()
def checkpoint_twice_over_one_graph(run_backward: RunBackward) -> Results:
    """A kept graph with a checkpoint runs twice, then is freed; double backward through a checkpoint."""
    w, x = leaf(4, 4, seed=1), leaf(2, 4, seed=2)
    loss = checkpoint(lambda t: (t @ w).sin().pow(3), x, use_reentrant=False).sum()
    run_backward(lambda: loss.backward(retain_graph=True))
    run_backward(loss.backward)
    results = raised_by(run_backward, loss.backward)
    again = checkpoint(lambda t: (t @ w).sin().pow(3), x, use_reentrant=False).sum()
    (gradient,) = run_backward(lambda: torch.autograd.grad(again, x, create_graph=True))
    run_backward(gradient.pow(2).sum().backward)
    return {**results, "w": w.grad, "x": x.grad}


@case()
def checkpoint_selective(run_backward: RunBackward) -> Results:
    """A policy decides which operators' results are kept; the others are computed again."""
    log: list[str] = []
    w = leaf(4, 4, seed=1)

    def policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        log.append(f"{operator} {context.is_recompute}")
        keep = operator is torch.ops.aten.mm.default
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    out = []
    for step in range(2):
        x = leaf(2, 4, seed=step)
        h = checkpoint(
            lambda t: torch.relu(t @ w).sin() @ w,
            x,
            use_reentrant=False,
            context_fn=lambda: create_selective_checkpoint_contexts(policy),
        )
        run_backward(h.sum().backward)
        out += [x.grad, take_grad(w)]
    return {"log": log, "out": out}


@case()
def checkpoint_that_recomputes_otherwise(run_backward: RunBackward) -> Results:
    """A recomputation that saves other tensors than the forward did is an error with a long text."""
    x = leaf(2, 4, seed=1)
    runs: list[int] = []

    def block(t: Tensor) -> Tensor:
        runs.append(1)
        return t.sin().exp() if len(runs) == 1 else t[:, :2].sin().exp()

    results = raised_by(run_backward, checkpoint(block, x, use_reentrant=False).sum().backward, "saved")
    run_backward(x.sin().sum().backward)
    return {**results, "x": x.grad}


@case()
def checkpoint_sequence_of_modules(run_backward: RunBackward) -> Results:
    """checkpoint_sequential over a stack, both kinds, under autocast in the forward alone."""
    out: list[object] = []
    for reentrant in (True, False):
        torch.manual_seed(3)
        model = torch.nn.Sequential(
            *(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()) for _ in range(5))
        )
        for step in range(2):
            x = leaf(3, 4, seed=step)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                h = checkpoint_sequential(model, 3, x, use_reentrant=reentrant)
            run_backward(h.float().pow(2).sum().backward)
            out.append(x.grad)
        out += [parameter.grad for parameter in model.parameters()]
    return {"out": out}


@case()
def checkpoint_reentrant_refuses_grad(run_backward: RunBackward) -> Results:
    """The reentrant kind works with a whole backward() alone: with grad() or inputs= it is an error that says so."""
    w, x = leaf(4, 4, seed=8), leaf(2, 4, seed=9)
    results: Results = {}
    loss = checkpoint(lambda t: torch.tanh(t @ w), x, use_reentrant=True).sum()
    results["grad"] = raised_by(
        run_backward, lambda: torch.autograd.grad(loss, x, retain_graph=True), "use_reentrant=True"
    )
    results["inputs"] = raised_by(
        run_backward, lambda: loss.backward(inputs=[x], retain_graph=True), "use_reentrant=True"
    )
    run_backward(loss.backward)
    return {**results, "w": w.grad, "x": x.grad}
