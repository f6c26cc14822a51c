"""Sizes and numbers that change from step to step."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import data, leaf, take_grad


@case(report=PYTORCH + "issues/113129", max_captures=2)
def dynamic_batch(run_backward: RunBackward) -> Results:
    """Each new batch size recompiled; right: static once, then one dynamic capture for all sizes."""
    w, b = leaf(4, 4, seed=2), leaf(4, seed=3)
    out = []
    for n in (3, 3, 5, 8, 4, 6):
        x = leaf(n, 4, seed=n)
        loss = (
            functional.layer_norm(functional.relu(functional.linear(x, w, b)), (4,)).reshape(-1).pow(2).mean()
        )
        run_backward(loss.backward)
        out += [x.grad, take_grad(w), take_grad(b)]
    return {"out": out}


@case(report=PYTORCH + "issues/146168")
def dynamic_zero_and_one(run_backward: RunBackward) -> Results:
    """Sizes got folded into constants between iterations; right: batches of 1 and 0 after larger ones are right."""
    w = leaf(3, 2, seed=4)
    out = []
    for n in (4, 7, 1, 0, 5):
        x = leaf(n, 3, seed=n)
        loss = (x @ w).view(n, 2).softmax(1)[:, 0].sum()
        run_backward(loss.backward)
        out += [x.grad, take_grad(w)]
    return {"out": out}


@case(report=PYTORCH + "issues/194976", max_captures=3)
def saved_scalar_changes(run_backward: RunBackward) -> Results:
    """A Python number that changes every step was reused stale; right: each step's own value, few captures."""
    x = leaf(8, seed=5)
    out = []
    for step, k in enumerate((0.5, 1.5, 0.1, 3.0)):
        loss = (
            (x * k).clamp(min=-k, max=k) + functional.leaky_relu(x, k) + x.pow(step + 2) + x.roll(step)
        ).sum()
        run_backward(loss.backward)
        out.append(take_grad(x))
    return {"out": out}


@case(max_captures=1)
def broadcast_changes(run_backward: RunBackward) -> Results:
    """One graph in which other operands are broadcast from step to step, up to dimensions that come and go."""
    shapes = [
        ((4, 3), (3,)),
        ((4, 3), (4, 1)),
        ((1, 3), (4, 3)),
        ((3,), (4, 3)),
        ((4, 3), (4, 3)),
        ((), (2, 2)),
        ((5,), ()),
    ]
    out: list[object] = []
    for step, (left, right) in enumerate(shapes):
        a, b = leaf(*left, seed=step), leaf(*right, seed=step + 20)
        run_backward(((a * b + a - b) / (b.abs() + 1)).sum().backward)
        out += [a.grad, b.grad]
    return {"out": out}


@case(max_captures=1)
def dtype_changes(run_backward: RunBackward) -> Results:
    """One graph in float, double, half, bfloat16 and complex, and with operands of two dtypes."""
    pairs = [
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
        (torch.float32, torch.float64),
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float16),
        (torch.complex64, torch.float32),
        (torch.float64, torch.complex64),
    ]
    out: list[object] = []
    for step, (left, right) in enumerate(pairs):
        a = data(3, 4, seed=step).to(left).requires_grad_()
        b = data(4, seed=step + 20).to(right).requires_grad_()
        y = (a * b).sum() * (a.sum(1) * 2).sum()
        run_backward(y.abs().backward)
        out += [a.grad, b.grad]
    return {"out": out}


@case()
def number_of_layers_changes(run_backward: RunBackward) -> Results:
    """A loop of another length in each step, and back: each length finds its own plan."""
    w = leaf(3, 3, seed=1)
    out = []
    for length in (1, 3, 2, 3, 1, 0, 2, 5, 0, 5):
        h = data(2, 3, seed=length) + w.sum()
        for _ in range(length):
            h = (h @ w).tanh()
        run_backward(h.sum().backward)
        out.append(take_grad(w))
    return {"out": out}


@case()
def branch_depends_on_values(run_backward: RunBackward) -> Results:
    """Graphs that agree in their roots and depth and differ inside: which leaf is used, which way round, how often."""
    a, b = leaf(3, seed=1), leaf(3, seed=2)
    forms = (
        lambda: (a * b).sum(),
        lambda: (b * a).sum(),
        lambda: (a * a).sum(),
        lambda: (b * b).sum(),
        lambda: (a * b.detach()).sum(),
        lambda: (a.detach() * b).sum(),
        lambda: (a - b).sum(),
        lambda: (b - a).sum(),
    )
    out: list[object] = []
    for step in range(24):
        run_backward(forms[(step * 5) % 8]().backward)
        out += [a.grad, b.grad]
        a.grad = b.grad = None
    return {"out": out}


@case(max_captures=1)
def kernels_take_other_ways(run_backward: RunBackward) -> Results:
    """Sizes that make a kernel take another way: contiguous or not, tiny or large, with a mask of another count."""
    w = leaf(8, 8, seed=1)
    out = []
    for step, rows in enumerate((2, 64, 1, 33)):
        x = data(8, rows, seed=step).t() if step % 2 else data(rows, 8, seed=step)
        h = x @ w
        loss = h[h > 0].sum() + h.cumsum(0).logsumexp(1).sum() + h.max(1).values.sum()
        run_backward(loss.backward)
        out.append(take_grad(w))
    return {"out": out}
