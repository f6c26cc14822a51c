"""Forwards that torch.compile made."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import grad_of, leaf, noting, take_grad


@case(report=PYTORCH + "issues/144175")
def aot_forward_with_hooks(run_backward: RunBackward) -> Results:
    """Inlining a compiled forward's backward failed on a missing module.

    Right: two compiled regions and an eager one, hooks between them, twice (second time from the cache).
    """
    f = torch.compile(lambda t, w: (t @ w).sin(), backend="aot_eager")
    w = leaf(4, 4, seed=3)
    log: list[str] = []
    out: list[object] = []
    for step in range(2):
        x = leaf(2, 4, seed=step)
        h = f(x, w)
        h.register_hook(noting(log, f"h{step}"))
        run_backward(f(h.relu(), w).sum().backward)
        out += [x.grad, grad_of(w).clone()]
    return {"out": out, "log": log}


@case(report=PYTORCH + "issues/133575", max_captures=3)
def aot_dynamic_batch(run_backward: RunBackward) -> Results:
    """Dynamic compiled forward plus traced backward hit a constraint violation; right: all batch sizes work."""
    f = torch.compile(lambda t: t.sin().sin() * t.shape[0], backend="aot_eager", dynamic=True)
    out: list[object] = []
    for n in (2, 4, 7):
        x = leaf(n, 3, seed=n)
        run_backward(f(x).sum().backward)
        out.append(x.grad)
    return {"out": out}


@case()
def aot_with_views_and_graph_break(run_backward: RunBackward) -> Results:
    """A compiled region that changes its input in place, gives views, breaks its graph, and is used twice in a loss."""

    def function(t: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        t.mul_(2)
        h = t @ w
        torch._dynamo.graph_break()
        return h[0], h.t().exp()

    f = torch.compile(function, backend="aot_eager")
    w = leaf(3, 3, seed=1)
    out: list[object] = []
    for step in range(3):
        x = leaf(2 + step, 3, seed=step)
        h = x * 1.0
        first, second = f(h, w)
        third, _ = f(second.t() * 0.1, w)
        loss = (first * third).sum() + second.pow(2).sum()
        run_backward(partial(loss.backward, retain_graph=True))
        run_backward(loss.backward)
        out += [x.grad, take_grad(w)]
    return {"out": out}


@case()
def compiled_inside_backward(run_backward: RunBackward) -> Results:
    """A function is compiled for the first time while a backward runs: in a recomputation, in a hook."""
    f = torch.compile(lambda t, w: (t @ w).sin(), backend="aot_eager")
    g = torch.compile(lambda t: t.cos() * t, backend="aot_eager")
    w = leaf(3, 3, seed=1)
    out: list[object] = []
    for rows in (2, 2, 5):
        torch._dynamo.reset()
        x = leaf(rows, 3, seed=rows)
        h = checkpoint(f, x, w, use_reentrant=False)
        h.register_hook(lambda gradient: g(gradient))
        again = checkpoint(lambda t: torch.exp(t) @ w, h, use_reentrant=True)
        torch._dynamo.reset()
        run_backward(again.sum().backward)
        out += [x.grad, take_grad(w)]
    return {"out": out}
