"""Views, and values that are changed in place through them."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import applied, data, leaf, noting, take_grad


@case(report=PYTORCH + "issues/5871")
def inplace_function_on_view(run_backward: RunBackward) -> Results:
    """A custom function writing into a slice of a non-leaf lost the second input's gradient.

    Right: both gradients, via CopySlices around a Python node.
    """

    class AddInto(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, target: Tensor, source: Tensor) -> Tensor:
            target.add_(source)
            ctx.mark_dirty(target)
            return target

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
            return gradient, gradient * 2  # on purpose not the true derivative

    a, b = leaf(4, 3, seed=7), leaf(3, seed=8)
    base = a * 2
    applied(AddInto, base[1], b)
    run_backward((base * data(4, 3, seed=9)).sum().backward)
    return {"a": a.grad, "b": b.grad}


@case(report=PYTORCH + "issues/3313")
def copyslices_basic(run_backward: RunBackward) -> Results:
    """Wanted in-place updates on views; right: base and operand both get the right gradient."""
    x, y = leaf(4, 3, seed=1), leaf(3, seed=2)
    base = x * 1.5
    base[2].mul_(y)
    base[:, 1].add_(base[:, 0])
    run_backward(base.pow(2).sum().backward)
    return {"x": x.grad, "y": y.grad}


@case(report=PYTORCH + "pull/105809")
def copyslices_dtype_view(run_backward: RunBackward) -> Results:
    """An in-place change through a view that strides cannot describe was refused as 'view_fn not supported'.

    Right: correct complex gradient (the view is the real view of a complex tensor).
    """
    z = leaf(4, seed=3, dtype=torch.complex64)
    k = leaf(4, seed=4)
    w = z * 1
    torch.view_as_real(w)[:, 0].mul_(k)
    loss = (w * w.conj()).real.sum() + w.imag.sum()
    run_backward(loss.backward)
    return {"z": z.grad, "k": k.grad}


@case(report=PYTORCH + "pull/117552")
def retain_grad_base_inplace_view(run_backward: RunBackward) -> Results:
    """After an in-place change of its view, the base's retained gradient was the old one.

    Right: .grad belongs to the base's new history.
    """
    x = leaf(4, seed=6)
    base = x * 2
    base.retain_grad()
    base[1:3].mul_(10)
    base[0:1].add_(base[3:4].detach())
    run_backward((base * data(4, seed=7)).sum().backward)
    return {"x": x.grad, "base": base.grad}


@case(report=PYTORCH + "issues/55980")
def inplace_slice_times_activation(run_backward: RunBackward) -> Results:
    """`x[i] *= v` worked but the spelled-out form raised; right: the in-place form gives gradients to both."""
    w, v = leaf(3, 4, seed=8), leaf(4, seed=9)
    h, s = w * 2.0, v.sin()
    h[1] *= s
    h.t()[2] *= 0.5
    run_backward(h.mean().backward)
    return {"w": w.grad, "v": v.grad}


@case(max_captures=2)
def copyslices_kept_and_replayed(run_backward: RunBackward) -> Results:
    """Copies of slices under a kept graph, in graphs that are replayed, with hooks on the copied parts."""
    log: list[str] = []
    w = leaf(3, seed=1)
    out = []
    for step in range(3):
        base = leaf(2 + step, 3, seed=step) * 1.0
        base[0].mul_(w)
        base[-1].copy_(w * 2)
        base[0].register_hook(noting(log, f"{step} row"))
        base.register_hook(noting(log, f"{step} base"))
        loss = base.exp().sum()
        run_backward(partial(loss.backward, retain_graph=True))
        run_backward(loss.backward)
        out.append(take_grad(w))
    return {"log": log, "out": out}


@case()
def copyslices_of_odd_views(run_backward: RunBackward) -> Results:
    """In-place through diagonals, overlapping-free as_strided, unfolded, transposed, expanded-then-selected views."""
    x, d, s = leaf(4, 4, seed=1), leaf(4, seed=2), leaf(2, 2, seed=3)
    base = x * 1.0
    base.diagonal().mul_(d)
    base.as_strided((2, 2), (8, 1), 1).add_(s)
    base.t().view(2, 2, 4)[:, 1].sub_(d)
    base.view(-1)[3:11:2].clamp_(min=0)
    base.unflatten(0, (2, 2)).movedim(0, -1)[0].mul_(2)
    run_backward((base * data(4, 4, seed=4)).sin().sum().backward)
    return {"x": x.grad, "d": d.grad, "s": s.grad}


@case()
def foreach_inplace_on_views(run_backward: RunBackward) -> Results:
    """Foreach operators in place, on tensors and on views of them."""
    xs = [leaf(3, 2, seed=seed) for seed in range(3)]
    hs = [x * 2 for x in xs]
    torch._foreach_mul_(hs, 3.0)
    torch._foreach_mul_([h[1] for h in hs], [x[0] for x in xs])
    torch._foreach_add_([h[:, 1] for h in hs[:2]], [x[:, 0] for x in xs[1:]], alpha=2)
    run_backward(torch.stack([h.sin().sum() for h in hs]).sum().backward)
    return {"xs": [x.grad for x in xs]}


@case()
def view_made_without_grad(run_backward: RunBackward) -> Results:
    """Views made in no_grad and through detach, changed in place where it is allowed; the base's history is whole."""
    x, k = leaf(4, seed=1), leaf(2, seed=2)
    base = x * 2
    with torch.no_grad():
        quiet = base[:2]
    errors = []
    try:
        quiet.mul_(k)
    except RuntimeError as error:
        errors.append(str(error))
    other = x.clone()
    other.detach()[1:3].zero_()
    loss = base.pow(2).sum() + (other * data(4, seed=3)).sum()
    run_backward(loss.backward)
    return {"errors": errors, "x": x.grad, "k": k.grad}


@case()
def base_replaced_between_steps(run_backward: RunBackward) -> Results:
    """A view kept over steps while its base changes in place between them: each step has its own history."""
    w = leaf(3, seed=1)
    state = torch.zeros(2, 3)
    top = state[0]
    out = []
    for step in range(4):
        state = state.detach()
        state.mul_(0.5)
        top = state[0]
        top.add_(w * (step + 1))
        run_backward((state.exp() * data(2, 3, seed=step)).sum().backward)
        out += [state.detach().clone(), take_grad(w)]
    return {"out": out}
