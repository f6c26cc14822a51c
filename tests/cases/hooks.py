"""Hooks on tensors: their order, their arguments, what they replace, callbacks after the backward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import data, grad_of, leaf, node_of, noting, raised_by


def _queue_callback(callback: Any) -> None:
    torch.autograd.Variable._execution_engine.queue_callback(callback)


@case(report=PYTORCH + "pull/138553")
def hook_order_leaf(run_backward: RunBackward) -> Results:
    """Hooks of one parameter came in another order than in eager.

    Right: tensor hook, node pre-hook, accumulate, post-accumulate hook, node post-hook.
    """
    log: list[str] = []
    w, x = leaf(4, 4, seed=1), data(3, 4, seed=2)
    accumulator = node_of(w)
    accumulator.register_hook(lambda results, gradients: log.append("node-post"))
    accumulator.register_prehook(lambda gradients: log.append(f"node-pre {w.grad is not None}"))
    w.register_post_accumulate_grad_hook(lambda p: log.append(f"post-acc {p.grad is not None}"))
    w.register_hook(lambda g: log.append(f"tensor {w.grad is not None}"))
    loss = (x @ w).tanh().sum()
    run_backward(loss.backward)
    return {"log": log, "w": w.grad}


@case(report=PYTORCH + "issues/35802")
def grad_input_hook_fires(run_backward: RunBackward) -> Results:
    """A hook on a tensor passed as `inputs` of autograd.grad did not fire.

    Right: it fires and its return value is what grad() gives back, for leaf and non-leaf inputs.
    """
    log: list[str] = []
    x = leaf(3, seed=8)
    x.register_hook(noting(log, "x", lambda g: g * 10))
    h = x.sin()
    h.register_hook(noting(log, "h", lambda g: g + 1))
    y = (h * 2).sum()
    (gh,) = run_backward(lambda: torch.autograd.grad(y, [h], retain_graph=True))
    (gx,) = run_backward(lambda: torch.autograd.grad(y, [x]))
    return {"gh": gh, "gx": gx, "log": log, "x_grad": x.grad}


@case(report=PYTORCH + "issues/121071")
def final_callback(run_backward: RunBackward) -> Results:
    """`queue_callback` from a hook failed with 'only during backward pass'; right: it runs once, after everything."""
    log: list[str] = []
    x, w = leaf(3, seed=1), leaf(3, seed=2)

    def hook(gradient: Tensor) -> None:
        log.append("hook")
        _queue_callback(lambda: log.append(f"final {x.grad is not None} {w.grad is not None}"))

    h = x * w
    h.register_hook(hook)
    w.register_post_accumulate_grad_hook(lambda p: log.append("w ready"))
    loss = h.cos().sum()
    run_backward(loss.backward)
    return {"log": log, "x": x.grad, "w": w.grad}


@case()
def final_callbacks_queue_more(run_backward: RunBackward) -> Results:
    """Callbacks queue callbacks, run a backward of their own, and see the mode that the backward was called in."""
    log: list[str] = []
    x, other = leaf(3, seed=1), leaf(3, seed=2)

    def last() -> None:
        log.append(f"last {torch.is_grad_enabled()}")

    def second() -> None:
        log.append("second")
        with torch.enable_grad():
            (other * 3).sum().backward()
        log.append(f"other {other.grad is not None}")

    def first() -> None:
        log.append(f"first {torch.is_grad_enabled()} {x.grad is not None}")
        _queue_callback(last)

    def hook(gradient: Tensor) -> None:
        _queue_callback(first)
        _queue_callback(second)

    loss = (x * 2).sum()
    loss.register_hook(hook)
    with torch.no_grad():
        run_backward(loss.backward)
    return {"log": log, "x": x.grad, "other": other.grad}


@case(report=PYTORCH + "issues/17315")
def autograd_inside_hook(run_backward: RunBackward) -> Results:
    """Autograd inside a hook surprised a user.

    Right: grad mode is off there, and enable_grad lets a hook run its own small backward.
    """
    modes: list[bool] = []
    x = leaf(4, seed=5)
    h = x.pow(3)

    def hook(gradient: Tensor) -> Tensor:
        modes.append(torch.is_grad_enabled())
        with torch.enable_grad():
            v = gradient.detach().requires_grad_()
            (dv,) = torch.autograd.grad((v * v).sum(), v)
        return gradient + dv

    h.register_hook(hook)
    loss = h.sum()
    run_backward(loss.backward)
    return {"modes": modes, "x": x.grad}


@case()
def backward_of_same_graph_inside_hook(run_backward: RunBackward) -> Results:
    """A hook runs a kept graph again while it is being run, as gradient penalties do."""
    log: list[str] = []
    x = leaf(4, seed=5)
    h = x.exp()
    loss = h.sin().sum()

    def hook(gradient: Tensor) -> Tensor | None:
        log.append("hook")
        if len(log) > 2:
            return None
        (inner,) = torch.autograd.grad(loss, x, retain_graph=True)
        return gradient + inner

    h.register_hook(hook)
    run_backward(lambda: loss.backward(retain_graph=True))
    run_backward(loss.backward)
    return {"log": log, "x": x.grad}


@case()
def retain_grad_among_hooks(run_backward: RunBackward) -> Results:
    """A retained gradient is what is left after all hooks of the tensor, also those that came after retain_grad()."""
    log: list[str] = []
    x = leaf(3, seed=1)
    h = x * 2
    h.register_hook(noting(log, "before", lambda g: g + 1))
    h.retain_grad()
    h.register_hook(noting(log, "after", lambda g: g * 10))
    h.register_hook(lambda g: log.append(f"retained yet: {h.grad is not None}"))
    loss = (h * h).sum()
    loss.retain_grad()
    for _ in range(2):
        run_backward(lambda: loss.backward(retain_graph=True))
    return {"log": log, "x": x.grad, "h": h.grad, "loss": loss.grad}


@case()
def multi_grad_hooks(run_backward: RunBackward) -> Results:
    """A hook for several tensors runs when all gradients are there, or with the first; those never reached are None."""
    log: list[str] = []
    a, b, c, unused = (leaf(2, seed=seed) for seed in range(4))
    h = a * b

    def every(gradients: Any) -> None:
        log.append("all: " + " ".join("None" if g is None else f"{g.sum().item()!r}" for g in gradients))

    def any_one(gradient: Tensor) -> None:
        log.append(f"any: {gradient.sum().item()!r}")

    torch.autograd.graph.register_multi_grad_hook([a, h, c, unused], every, mode="all")
    torch.autograd.graph.register_multi_grad_hook([a, b, c], any_one, mode="any")
    loss = (h.exp() * c).sum()
    run_backward(lambda: loss.backward(retain_graph=True))
    run_backward(lambda: loss.backward(inputs=[c], retain_graph=True))
    run_backward(lambda: torch.autograd.grad(loss, h, retain_graph=True))
    other = (a.exp() * b).sum()
    results = raised_by(run_backward, lambda: torch.autograd.grad(other, [a, b]), "_will_engine_execute_node")
    return {**results, "log": log, "a": a.grad, "c": c.grad}


@case()
def optimizer_inside_hook(run_backward: RunBackward) -> Results:
    """Updating a parameter and dropping its gradient as soon as it is there: memory for one gradient at a time."""
    log: list[str] = []
    ws = [leaf(4, 4, seed=seed) for seed in range(3)]

    def update(p: Tensor) -> None:
        held = sum(w.grad is not None for w in ws)
        with torch.no_grad():
            p.sub_(grad_of(p), alpha=0.1)
        p.grad = None
        log.append(f"{held} gradient held")

    for w in ws:
        w.register_post_accumulate_grad_hook(update)
    for step in range(3):
        h = data(2, 4, seed=10 + step)
        for w in ws:
            h = (h @ w).tanh()
        run_backward(h.sum().backward)
    return {"log": log, "ws": ws, "grads": [w.grad for w in ws]}


@case()
def hook_writes_into_gradient(run_backward: RunBackward) -> Results:
    """A hook changes its gradient in place, where the gradient also goes to another tensor, or is the caller's own."""
    x, y = leaf(3, seed=1), leaf(3, seed=2)
    total = x * 1.0 + y * 1.0
    h = total.view(3)

    def double(gradient: Tensor) -> None:
        gradient.mul_(2)

    h.register_hook(double)
    given = data(3, seed=3)
    run_backward(lambda: (h + 0).backward(given))
    return {"x": x.grad, "y": y.grad, "given": given}


@case()
def callback_outside_of_backward(run_backward: RunBackward) -> Results:
    """queue_callback is refused where no backward runs: before one, after one, and after one that failed."""
    x = leaf(3, seed=1)
    results: Results = {}
    for step in range(3):
        results[f"refused {step}"] = raised_by(lambda action: action(), lambda: _queue_callback(print))
        h = x.sin()
        if step == 1:
            h.register_hook(lambda g: g[:1])
        try:
            run_backward(h.sum().backward)
        except RuntimeError as error:
            results[f"failed {step}"] = str(error)
    results["refused"] = raised_by(lambda action: action(), lambda: _queue_callback(print))
    return {**results, "x": x.grad}
