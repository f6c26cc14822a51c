"""Operators of torch.library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import applied, leaf, raised_by, take_grad


@case(report=PYTORCH + "issues/135057")
def custom_op_with_autograd(run_backward: RunBackward) -> Results:
    """torch.library custom ops broke the traced backward.

    Right: a registered formula runs; one without a formula raises the same error as in eager.
    """
    library = torch.library.Library("backbind_bump", "FRAGMENT")
    library.define("bump(Tensor t, float k) -> Tensor")
    library.impl("bump", lambda t, k: t.sin() * k, "CPU")

    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    torch.library.register_autograd(
        "backbind_bump::bump",
        lambda ctx, g: (g * ctx.saved_tensors[0].cos() * ctx.k, None),
        setup_context=setup_context,
        lib=library,
    )
    x = leaf(3, seed=5)
    run_backward(torch.ops.backbind_bump.bump(x * 1, 1.5).sum().backward)

    @torch.library.custom_op("backbind_bump::noformula", mutates_args=())
    def noformula(t: Tensor) -> Tensor:
        return t.sin()

    z = leaf(3, seed=6)
    loss = noformula(z * 1).sum()
    results = raised_by(run_backward, loss.backward, "noformula")
    return {**results, "x": x.grad}


@case(max_captures=1)
def custom_op_of_lists(run_backward: RunBackward) -> Results:
    """A custom operator that takes a list of tensors and gives several, one of which nothing depends on."""
    seen: list[str] = []

    @torch.library.custom_op("backbind_lists::weighted", mutates_args=())
    def weighted(parts: Sequence[Tensor], weight: float) -> tuple[Tensor, Tensor]:
        total = torch.stack([part * weight for part in parts]).sum(0)
        return total, total.cos()

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.count, ctx.weight = len(inputs[0]), inputs[1]
        ctx.set_materialize_grads(False)

    def backward(ctx: Any, total: Tensor, cosine: Tensor | None) -> Any:
        seen.append(f"{ctx.needs_input_grad} {cosine is None}")
        return [total * ctx.weight for _ in range(ctx.count)], None

    weighted.register_autograd(backward, setup_context=setup_context)
    out = []
    a, b = leaf(3, seed=1), leaf(3, seed=2)
    for step in range(3):
        total, _ = weighted([a, b * 2, a.detach()], 0.5 + step)
        run_backward(total.sum().backward)
        out += [take_grad(a), take_grad(b)]
    return {"seen": seen, "out": out}


@case()
def custom_op_that_mutates(run_backward: RunBackward) -> Results:
    """Custom operators that write into an argument: one inside a function's backward, one that has no gradient."""

    @torch.library.custom_op("backbind_mutating::count", mutates_args=("counter",))
    def count(counter: Tensor, t: Tensor) -> None:
        counter.add_(t.numel())

    counter = torch.zeros(1)

    class Counting(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> Tensor:
            return t.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            count(counter, gradient)
            return gradient * 2

    x = leaf(3, seed=1)
    for _ in range(2):
        run_backward(applied(Counting, x.sin()).sum().backward)
    h = x.sin()
    results = raised_by(lambda action: action(), lambda: count(h, x))
    return {**results, "x": x.grad, "counter": counter, "h": h.detach()}
