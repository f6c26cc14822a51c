"""Hooks that are added, removed or replaced: between steps, by one another, while they run."""

from __future__ import annotations

from collections import OrderedDict

from torch import Tensor
from torch.utils.hooks import RemovableHandle

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import data, leaf, node_of, noting, take_grad


@case()
def hooks_come_and_go_between_steps(run_backward: RunBackward) -> Results:
    """One graph shape, in every step other kinds of hooks on other tensors."""
    log: list[str] = []
    w = leaf(4, seed=1)
    out = []
    for step in range(8):
        h = w * data(4, seed=step)
        z = h.sin()
        handles: list[RemovableHandle] = []
        if step & 1:
            h.register_hook(noting(log, f"{step} tensor", lambda g: g * 2))
        if step & 2:
            handles.append(w.register_post_accumulate_grad_hook(noting(log, f"{step} accumulated")))
        if step & 4:
            node_of(z).register_hook(lambda results, gradients, step=step: log.append(f"{step} node"))
            handles.append(w.register_hook(noting(log, f"{step} leaf", lambda g: g + 1)))
        run_backward(z.sum().backward)
        for handle in handles:
            handle.remove()
        out.append(take_grad(w))
    return {"log": log, "out": out}


@case()
def hook_removes_itself(run_backward: RunBackward) -> Results:
    """A hook that is meant to run once takes itself off while it runs."""
    log: list[str] = []
    x = leaf(3, seed=1)
    handles: list[RemovableHandle] = []

    def once(gradient: Tensor) -> Tensor:
        log.append("once")
        handles.pop().remove()
        return gradient * 5

    handles.append(x.register_hook(once))
    out = []
    for _ in range(3):
        run_backward((x * 2).sum().backward)
        out.append(take_grad(x))
    return {"log": log, "out": out}


@case()
def hook_removes_another(run_backward: RunBackward) -> Results:
    """A hook takes off a later one of the same tensor, one of a tensor further on, and one that already ran."""
    log: list[str] = []
    x = leaf(3, seed=1)
    h = x * 2
    z = h.sin()
    ran = z.register_hook(noting(log, "already ran"))
    further = x.register_hook(noting(log, "further on", lambda g: g * 100))
    handles: list[RemovableHandle] = []

    def remover(gradient: Tensor) -> None:
        log.append("remover")
        for handle in (*handles, further, ran):
            handle.remove()

    h.register_hook(remover)
    handles.append(h.register_hook(noting(log, "later", lambda g: g * 10)))
    loss = z.sum()
    errors = []
    for _ in range(2):
        try:
            run_backward(lambda: loss.backward(retain_graph=True))
        except RuntimeError as error:
            errors.append(str(error))
    return {"log": log, "errors": errors, "x": x.grad}


@case()
def hook_adds_hooks_while_running(run_backward: RunBackward) -> Results:
    """A hook adds hooks of all kinds to tensors that are still to come, where there were none when it began."""
    log: list[str] = []
    x = leaf(3, seed=1)
    h = x * 2
    z = h.sin()

    def adder(gradient: Tensor) -> None:
        if log:
            return
        log.append("adder")
        h.register_hook(noting(log, "h", lambda g: g * 2))
        h.retain_grad()
        node_of(h).register_prehook(lambda gradients: log.append("node-pre"))
        node_of(h).register_hook(lambda results, gradients: log.append("node-post"))
        x.register_hook(noting(log, "x", lambda g: g + 1))
        x.register_post_accumulate_grad_hook(noting(log, "x accumulated"))

    z.register_hook(adder)
    loss = z.sum()
    for _ in range(2):
        run_backward(lambda: loss.backward(retain_graph=True))
    return {"log": log, "x": x.grad, "h": h.grad}


@case()
def node_hook_adds_to_own_node(run_backward: RunBackward) -> Results:
    """A node's pre-hook adds a pre-hook and a post-hook to the node that is about to run."""
    log: list[str] = []
    x = leaf(3, seed=1)
    h = x * 2
    node = node_of(h)

    def pre(gradients: tuple[Tensor, ...]) -> None:
        log.append("pre")
        if len(log) == 1:
            node.register_prehook(lambda gradients: log.append("added pre"))
            node.register_hook(lambda results, gradients: log.append("added post"))

    node.register_prehook(pre)
    loss = h.sum()
    for _ in range(2):
        run_backward(lambda: loss.backward(retain_graph=True))
    return {"log": log, "x": x.grad}


@case()
def hook_adds_to_own_tensor(run_backward: RunBackward) -> Results:
    """A tensor's first and only hook adds a second one to the same tensor."""
    log: list[str] = []
    x = leaf(3, seed=1)
    h = x * 2

    def adder(gradient: Tensor) -> None:
        log.append("adder")
        h.register_hook(noting(log, "added"))

    h.register_hook(adder)
    loss = h.sum()
    errors = []
    for _ in range(2):
        try:
            run_backward(lambda: loss.backward(retain_graph=True))
        except RuntimeError as error:
            errors.append(str(error))
    return {"log": log, "errors": errors, "x": x.grad}


@case(report=PYTORCH + "issues/118435", max_captures=1)
def zero_grad_no_recapture(run_backward: RunBackward) -> Results:
    """Setting .grad to None each step made every backward recompile; right: one capture."""
    p = leaf(8, seed=6)

    def double(param: Tensor) -> None:
        assert param.grad is not None
        param.grad *= 2

    p.register_post_accumulate_grad_hook(double)
    out = []
    for _ in range(5):
        run_backward((p * p).sum().backward)
        out.append(take_grad(p))
    return {"out": out}


@case()
def hooks_before_and_after_inplace(run_backward: RunBackward) -> Results:
    """Hooks and retained gradients of a tensor that is then changed in place: a hook stays with its time's value."""
    log: list[str] = []
    x = leaf(3, seed=1)
    h = x * 2
    h.register_hook(noting(log, "old value", lambda g: g + 1))
    h.retain_grad()
    h.mul_(3)
    h.register_hook(noting(log, "new value", lambda g: g * 2))
    h.add_(x)
    loss = (h * data(3, seed=2)).sum()
    run_backward(loss.backward)
    return {"log": log, "x": x.grad, "h": h.grad}


@case()
def hooks_on_views_and_base(run_backward: RunBackward) -> Results:
    """Hooks on a base, on its views, and on a view whose base was changed through another view."""
    log: list[str] = []
    x = leaf(4, 3, seed=1)
    base = x * 1.0
    row, column = base[1], base[:, 2]
    base.register_hook(noting(log, "base, old"))
    row.register_hook(noting(log, "row, old", lambda g: g * 2))
    column.mul_(2)
    base.register_hook(noting(log, "base, new"))
    row.register_hook(noting(log, "row, new", lambda g: g + 1))
    column.register_hook(noting(log, "column, new"))
    row.retain_grad()
    loss = (base.sum(0) * row).sum() + column.pow(2).sum()
    run_backward(loss.backward)
    return {"log": log, "x": x.grad, "row": row.grad}


@case()
def hook_handle_in_with(run_backward: RunBackward) -> Results:
    """A handle used as a context, and hooks whose order was chosen by a dictionary of the user's own."""
    log: list[str] = []
    x = leaf(3, seed=1)
    out = []
    with x.register_hook(noting(log, "inside", lambda g: -g)):
        run_backward(x.exp().sum().backward)
    out.append(take_grad(x))
    run_backward(x.exp().sum().backward)
    out.append(take_grad(x))
    x._backward_hooks = OrderedDict()
    run_backward(x.exp().sum().backward)
    return {"log": log, "out": out, "x": x.grad}
