"""Gradients that are not there."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import applied, data, leaf, take_grad


class _Stop(torch.autograd.Function):
    """Nothing, whose gradient is undefined."""

    @staticmethod
    def forward(ctx: Any, t: Tensor) -> Tensor:
        return t * 0

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> None:
        return None


@case(report=PYTORCH + "issues/118396")
def no_materialize_grads(run_backward: RunBackward) -> Results:
    """set_materialize_grads(False) was ignored under tracing; right: backward sees None for an unused output."""
    seen: list[tuple[bool, bool]] = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> tuple[Tensor, Tensor]:
            ctx.set_materialize_grads(False)
            return t * 2, t * 3

        @staticmethod
        def backward(ctx: Any, ga: Tensor | None, gb: Tensor | None) -> Tensor | None:
            seen.append((ga is None, gb is None))
            total = None
            for g, k in ((ga, 2), (gb, 3)):
                if g is not None:
                    total = g * k if total is None else total + g * k
            return total

    x = leaf(3, seed=4)
    results: Results = {}
    for step, pick in enumerate(((0,), (1,), (0, 1))):
        outputs = applied(Two, x)
        loss = (
            torch.stack([outputs[i].sum() for i in pick]).sum()
            if len(pick) == 1
            else outputs[0].sum() + outputs[1].sum()
        )
        run_backward(loss.backward)
        results[f"x{step}"] = take_grad(x)
    return {**results, "seen": seen}


@case(report=PYTORCH + "issues/3241")
def none_into_builtin_node(run_backward: RunBackward) -> Results:
    """A custom backward that returns None crashed the built-in node after it.

    Right: undefined flows on and the leaf's .grad stays None.
    """
    x, w = leaf(2, 4, seed=7), leaf(4, seed=8)
    h = functional.layer_norm(x * 2, (4,), w).softmax(-1)
    run_backward(applied(_Stop, h).sum().backward)
    y = leaf(2, 4, seed=9)
    mixed = applied(_Stop, y.exp()).sum() + (y * 3).sum()
    run_backward(mixed.backward)
    return {"x": x.grad, "w": w.grad, "y": y.grad}


@case()
def undefined_under_hooks(run_backward: RunBackward) -> Results:
    """Hooks, retained gradients and accumulators where only an undefined gradient comes by."""
    log: list[str] = []
    x = leaf(3, seed=1)
    h = x.sin()
    h.retain_grad()
    h.register_hook(lambda g: log.append(f"h {g}"))
    x.register_hook(lambda g: log.append(f"x {g}"))
    x.register_post_accumulate_grad_hook(lambda p: log.append(f"accumulated {p.grad}"))
    loss = applied(_Stop, h).sum()
    errors = []
    try:
        run_backward(loss.backward)
    except (RuntimeError, TypeError) as error:
        errors.append(f"{type(error).__name__}: {error}")
    return {"log": log, "errors": errors, "x": x.grad, "h": h.grad}


@case()
def some_outputs_of_a_node_unused(run_backward: RunBackward) -> Results:
    """Nodes with several outputs of which other ones are used in each step."""
    x = leaf(4, 4, seed=1)
    out: list[object] = []
    for step in range(4):
        rows = (x * 1.0).unbind(0)
        first, second = (x @ x.t() + 9 * torch.eye(4)).chunk(2)
        values, vectors = torch.linalg.eigh(x @ x.t() + torch.diag(torch.arange(4.0)))
        lstm = torch.nn.LSTMCell(4, 4, bias=False)
        with torch.no_grad():
            for parameter in lstm.parameters():
                parameter.copy_(data(*parameter.shape, seed=5))
        hidden, cell = lstm(x)
        used = (
            (rows[step], second, values, hidden),
            (rows[0] * rows[3], first, vectors.abs(), cell),
            (first, second, hidden, cell),
            (values, vectors.abs(), rows[1], rows[2]),
        )[step]
        run_backward(torch.stack([one.pow(2).sum() for one in used]).sum().backward)
        out.append(take_grad(x))
    return {"out": out}
