"""torch.autograd.Function in all its ways."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import applied, data, leaf, raised_by, take_grad


class _ScaleGradient(torch.autograd.Function):
    """The identity, which scales its gradient in place by a number that is kept on ctx."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return t.view_as(t)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.mul_(ctx.factor), None


class _MatrixProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        return gradient @ b.t(), a.t() @ gradient


@case(report=PYTORCH + "issues/124827")
def ctx_scalar_attribute(run_backward: RunBackward) -> Results:
    """A number kept on ctx in an eager forward could not be traced.

    Right: it is read at run time, so a new value each step gives new gradients (backward also scales its argument in
    place).
    """
    w = leaf(3, seed=1)
    out = []
    for k in (0.5, 0.25, 4.0):
        loss = (applied(_ScaleGradient, w * 2.0, k) * data(3, seed=2)).sum()
        run_backward(loss.backward)
        out.append(take_grad(w))
    return {"out": out}


@case(report=PYTORCH + "issues/155105", max_captures=2)
def custom_matmul_many_steps(run_backward: RunBackward) -> Results:
    """The cache missed on a custom function at every iteration.

    Right: steady state after at most two captures though rows vary.
    """
    b = leaf(3, 3, seed=2)
    out = []
    for rows in (2, 2, 5, 7, 5, 2):
        a = leaf(rows, 3, seed=rows)
        run_backward(applied(_MatrixProduct, a, b).sum().backward)
        out.append(a.grad)
    return {"out": out, "b": b.grad}


@case()
def two_functions_of_one_shape(run_backward: RunBackward) -> Results:
    """Graphs that differ in the Python function alone, also in one made anew in each step, follow their own."""

    def made(factor: float) -> Any:
        class Made(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, t: Tensor) -> Tensor:
                return t * 2

            @staticmethod
            def backward(ctx: Any, gradient: Tensor) -> Any:
                return gradient * factor

        return Made

    x = leaf(3, seed=1)
    out = []
    first, second = made(3.0), made(5.0)
    for function in (first, second, first, made(7.0), made(9.0)):
        run_backward(applied(function, x.sin()).sum().backward)
        out.append(take_grad(x))
    return {"out": out}


@case()
def once_differentiable_twice(run_backward: RunBackward) -> Results:
    """A once-differentiable function under create_graph: its gradient is right, the second one an error."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> Tensor:
            ctx.save_for_backward(t)
            return t * t

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, gradient: Tensor) -> Any:
            (t,) = ctx.saved_tensors
            return 2 * t * gradient

    x = leaf(3, seed=1)
    y = (applied(Square, x.sin()) * x).sum()
    (g,) = run_backward(lambda: torch.autograd.grad(y, x, create_graph=True))
    results = raised_by(run_backward, g.sum().backward, "once_differentiable")
    return {**results, "g": g, "x": x.grad}


@case()
def mark_dirty_of_leaf_result(run_backward: RunBackward) -> Results:
    """A function that writes in place into a non-leaf, whose hooks and retained gradient move along."""
    log: list[float] = []

    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> Tensor:
            t.add_(1)
            ctx.mark_dirty(t)
            return t

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            return gradient * 3

    x = leaf(3, seed=1)
    h = x * 2
    h.retain_grad()
    h.register_hook(lambda g: log.append(g.sum().item()))
    same = applied(AddOne, h) is h
    run_backward((h * data(3, seed=2)).sum().backward)
    return {"same": same, "log": log, "x": x.grad, "h": h.grad}


@case()
def outputs_that_are_not_differentiable(run_backward: RunBackward) -> Results:
    """A function with several outputs, some marked non-differentiable or integer, one returned as it came."""
    seen: list[str] = []

    class Sorted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            values, order = t.sort()
            flat = t.detach().clone()
            ctx.mark_non_differentiable(order, flat)
            ctx.save_for_backward(order)
            return values, order, flat, t

        @staticmethod
        def backward(ctx: Any, values: Tensor, order: Tensor, flat: Tensor, t: Tensor) -> Tensor:
            seen.append(
                f"{values.dtype} {order.dtype} {order.sum().item()} {flat.sum().item()} {t.sum().item()!r}"
            )
            return torch.zeros_like(values).scatter(0, ctx.saved_tensors[0], values) + t

    x = leaf(5, seed=1)
    values, order, flat, same = applied(Sorted, x * 1.0)
    wanted = [t.requires_grad for t in (values, order, flat, same)]
    run_backward((values * data(5, seed=2) + same.exp()).sum().backward)
    return {"wanted": wanted, "seen": seen, "x": x.grad}


@case()
def gradient_is_broadcast(run_backward: RunBackward) -> Results:
    """A function returns a gradient that is larger than its input, and one that is smaller: summed, and expanded."""

    class Loose(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, small: Tensor, large: Tensor) -> Tensor:
            return small + large

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
            return gradient * 2, gradient[:1]

    small, large = leaf(1, 3, seed=1), leaf(4, 3, seed=2)
    out: list[object] = []
    for step in range(2):
        loss = (applied(Loose, small, large * 1.0) * data(4, 3, seed=3 + step)).sum()
        try:
            run_backward(loss.backward)
        except RuntimeError as error:
            out.append(str(error))
        out += [small.grad, large.grad]
    return {"out": out}


@case()
def needs_input_grad_of_subset(run_backward: RunBackward) -> Results:
    """ctx.needs_input_grad says what this backward wants: other answers for other `inputs=` of the same graph."""
    seen: list[str] = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
            ctx.save_for_backward(a, b, c)
            return a * b * c

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            seen.append(str(ctx.needs_input_grad))
            a, b, c = ctx.saved_tensors
            made = (b * c, a * c, a * b)
            return tuple(
                gradient * m if needed else None for m, needed in zip(made, ctx.needs_input_grad, strict=True)
            )

    a, b, c = leaf(3, seed=1), leaf(3, seed=2), data(3, seed=3)
    loss = applied(Product, a, b * 2, c).sum()
    run_backward(lambda: loss.backward(retain_graph=True))
    run_backward(lambda: loss.backward(inputs=[b], retain_graph=True))
    (ga,) = run_backward(lambda: torch.autograd.grad(loss, a, retain_graph=True))
    run_backward(lambda: loss.backward(inputs=[a], retain_graph=True))
    run_backward(loss.backward)
    return {"seen": seen, "ga": ga, "a": a.grad, "b": b.grad}


@case()
def backward_inside_function(run_backward: RunBackward) -> Results:
    """A function whose backward runs its forward again with grad, and a backward into the same parameters."""
    w = leaf(3, 3, seed=1)

    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> Tensor:
            ctx.save_for_backward(t)
            return (t @ w).tanh()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            t = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                (t @ w).tanh().backward(gradient)
            return t.grad

    out = []
    for step in range(3):
        x = leaf(2, 3, seed=step)
        run_backward(applied(Again, applied(Again, x) * 2.0).sum().backward)
        out.append(x.grad)
    return {"out": out, "w": w.grad}


@case()
def double_backward_of_function(run_backward: RunBackward) -> Results:
    """A function that saved its input and its output is differentiated twice, and once more."""

    class Exponential(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> Tensor:
            result = t.exp()
            ctx.save_for_backward(t, result)
            return result

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            t, result = ctx.saved_tensors
            return gradient * result + 0 * t.sin() * gradient

    x = leaf(3, seed=1)
    y = (applied(Exponential, x) * x).sum()
    (g1,) = run_backward(lambda: torch.autograd.grad(y, x, create_graph=True))
    (g2,) = run_backward(lambda: torch.autograd.grad((g1 * g1).sum(), x, create_graph=True))
    (g3,) = run_backward(lambda: torch.autograd.grad(g2.sum(), x))
    return {"g1": g1, "g2": g2, "g3": g3}


@case()
def setup_context_and_vmap(run_backward: RunBackward) -> Results:
    """A function of the new style, differentiated with a batch of gradients at once."""

    class Cube(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(t: Tensor) -> Tensor:
            return t**3

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            (t,) = ctx.saved_tensors
            return 3 * t * t * gradient

    x = leaf(3, seed=1)
    y = applied(Cube, x * 2.0)
    rows = torch.eye(3)
    (jacobian,) = run_backward(
        lambda: torch.autograd.grad(y, x, rows, is_grads_batched=True, retain_graph=True)
    )
    run_backward(y.sum().backward)
    return {"jacobian": jacobian, "x": x.grad}
