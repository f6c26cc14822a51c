"""What accumulating into .grad does and leaves: layouts, sharing, dtypes, order of sums."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import data, grad_of, leaf, noting, raised_by


@case(report=PYTORCH + "issues/127922")
def grad_layout_follows_param(run_backward: RunBackward) -> Results:
    """.grad came out with other strides than its parameter and fused optimizers refused it.

    Right: a dense parameter's .grad has the parameter's strides.
    """
    a = leaf(3, 4, seed=6)
    conv = leaf(4, 3, 2, 2, seed=7)
    channels_last = data(4, 3, 2, 2, seed=8).to(memory_format=torch.channels_last).requires_grad_()
    gradient = data(2, 2, 3, 4, seed=9).permute(3, 2, 0, 1)
    outputs = [a.clone(), conv.clone(), channels_last.clone()]
    gradients = [data(4, 3, seed=1).t(), gradient, data(4, 3, 2, 2, seed=2)]
    run_backward(lambda: torch.autograd.backward(outputs, gradients))
    return {"a": a.grad, "conv": conv.grad, "channels_last": channels_last.grad}


@case(report=PYTORCH + "pull/185286")
def fan_in_keeps_callers_grad(run_backward: RunBackward) -> Results:
    """Summing several contributions in place changed a gradient still in use.

    Right: neither the caller's gradient nor one seen by a hook changes.
    """
    kept: list[Tensor] = []
    x = leaf(3, seed=3)
    g = data(3, seed=4)
    h = x * 1.0
    h.register_hook(lambda t: kept.append(t))
    z = h + h + h.view(3)
    run_backward(lambda: z.backward(g))
    grad_of(x).add_(5)
    return {"g": g, "kept": kept, "x": x.grad}


@case(report=PYTORCH + "issues/51743")
def inputs_subset_accumulate(run_backward: RunBackward) -> Results:
    """backward(inputs=...) with a subset of leaves; right: only the named get .grad, other leaves' hooks stay quiet."""
    log: list[str] = []
    a, b, c = leaf(2, seed=1), leaf(2, seed=2), leaf(2, seed=3)
    for name, t in (("a", a), ("b", b), ("c", c)):
        t.register_post_accumulate_grad_hook(noting(log, name))
        t.register_hook(noting(log, name + "-hook"))
    loss = ((a * b).exp() * c).sum()
    run_backward(lambda: loss.backward(inputs=[a, c]))
    return {"log": log, "a": a.grad, "b": b.grad, "c": c.grad}


@case()
def who_shares_memory_with_grad(run_backward: RunBackward) -> Results:
    """A gradient is taken over where nobody else holds it, and copied where somebody does."""
    facts: list[str] = []
    kept: list[Tensor] = []

    def shares(left: Tensor, right: Tensor) -> bool:
        return left.untyped_storage().data_ptr() == right.untyped_storage().data_ptr()

    x, given = leaf(3, seed=1), data(3, seed=2)
    run_backward(lambda: x.clone().backward(given))
    facts.append(f"given to a clone: {shares(grad_of(x), given)}")
    x.grad = None
    run_backward(lambda: x.backward(given))
    facts.append(f"given to the leaf: {shares(grad_of(x), given)} {x.grad is given}")
    x.grad = None
    h = x * 2
    h.retain_grad()
    run_backward((h + x).sum().backward)
    facts.append(f"retained: {shares(grad_of(x), grad_of(h))}")
    x.grad = None
    x.register_hook(lambda g: kept.append(g))
    run_backward((x * 2).sum().backward)
    facts.append(f"kept by a hook: {shares(grad_of(x), kept[0])}")
    a, b = leaf(3, seed=3), leaf(3, seed=4)
    run_backward(lambda: (a + b).backward(given))
    facts.append(f"two leaves: {shares(grad_of(a), grad_of(b))}, given: {shares(grad_of(a), given)}")
    c = leaf(3, seed=5)
    run_backward((c * 1.0).sum().backward)
    facts.append(f"an expanded one has strides {grad_of(c).stride()}")
    return {"facts": facts, "x": x.grad, "a": a.grad, "b": b.grad, "given": given}


@case()
def existing_grad_of_every_kind(run_backward: RunBackward) -> Results:
    """.grad is there already: written in place, or replaced where that cannot be; other names for it see the same."""
    out: list[object] = []
    existing = (
        torch.ones(2, 3),
        torch.ones(3, 2).t(),
        torch.ones(1, 3).expand(2, 3),
        torch.ones(2, 3).to_sparse(),
        torch.ones(2, 6)[:, ::2],
        torch.ones(2, 3, requires_grad=True) * 1.0,
    )
    for seed, gradient in enumerate(existing):
        p = leaf(2, 3, seed=seed)
        p.grad = gradient
        loss = (p * data(2, 3, seed=9)).sum()
        try:
            run_backward(loss.backward)
        except RuntimeError as error:
            out.append(str(error))
        out += [p.grad, gradient, p.grad is gradient]
    return {"out": out}


@case()
def grad_of_chosen_dtype(run_backward: RunBackward) -> Results:
    """A leaf asks for gradients of another dtype than its own, or of any: each arrives as asked."""
    seen: list[str] = []
    out: list[object] = []
    choices: tuple[torch.dtype | None, ...] = (torch.float32, torch.float64, torch.bfloat16, None)
    for chosen in choices:
        p = data(3, seed=1).to(torch.bfloat16).requires_grad_()
        p.grad_dtype = chosen
        p.register_hook(lambda g: seen.append(str(g.dtype)))
        for _ in range(2):
            run_backward((p.float() * data(3, seed=2)).sum().backward)
            run_backward(p.pow(2).sum().backward)
        out.append(p.grad)
    return {"seen": seen, "out": out}


@case()
def order_of_sums(run_backward: RunBackward) -> Results:
    """Many contributions to one value, of sizes for which the order of summing shows in the bits."""
    x, w = leaf(64, seed=1), leaf(64, seed=2)
    h = x * 1.0
    parts = [h * (10.0 ** ((i * 7) % 9 - 4)) for i in range(20)]
    parts += [w.half().float() * part.sin() for part in parts[::3]]
    total = torch.stack([part.sum() for part in parts[::-1]]).sum() + sum(part.mean() for part in parts[1::2])
    low = h.bfloat16()
    rows = [low * (i + 0.3) for i in range(9)]
    loss = total + torch.stack(rows).float().sum()
    run_backward(loss.backward)
    return {"x": x.grad, "w": w.grad}


@case()
def tied_weights(run_backward: RunBackward) -> Results:
    """One parameter as embedding and as output layer, over steps with and without zeroing."""
    w = leaf(6, 4, seed=1)
    bias = leaf(4, seed=2)
    out = []
    for step in range(4):
        h = torch.nn.functional.embedding(torch.tensor([0, 3, 3, 5]), w) + bias
        loss = (
            torch.nn.functional.cross_entropy(h.tanh() @ w.t(), torch.tensor([3, 3, 5, 1]))
            + bias.pow(2).sum()
        )
        run_backward(loss.backward)
        out += [grad_of(w).clone(), grad_of(bias).clone()]
        if step == 1:
            w.grad = bias.grad = None
    return {"out": out, "w": w.grad}


@case()
def leaf_changes_after_forward(run_backward: RunBackward) -> Results:
    """Between forward and backward a leaf stops wanting its gradient, gets other data, or is changed in place."""
    frozen, swapped, changed = leaf(3, seed=1), leaf(3, seed=2), leaf(3, seed=3)
    loss = (frozen * 2 + swapped * 3 + changed * 4).sum()
    frozen.requires_grad_(False)
    swapped.data = data(3, seed=4)
    with torch.no_grad():
        changed.mul_(2)
    run_backward(loss.backward)
    resized = leaf(3, seed=5)
    other = (resized * 2).sum()
    resized.data = data(5, seed=6)
    results = raised_by(run_backward, other.backward)
    return {**results, "frozen": frozen.grad, "swapped": swapped.grad, "changed": changed.grad}


@case()
def create_graph_accumulates(run_backward: RunBackward) -> Results:
    """backward(create_graph=True) leaves gradients with a graph, warns once, and adds out of place to what is there."""
    x = leaf(3, seed=1)
    first = None
    for step in range(3):
        run_backward(lambda: (x.sin() * x).sum().backward(create_graph=True))
        if step == 0:
            first = x.grad
    gradient = grad_of(x)
    run_backward(lambda: torch.autograd.backward(gradient.pow(2).sum(), inputs=[x]))
    return {"first": first, "x": x.grad}
