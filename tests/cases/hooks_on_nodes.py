"""Hooks on autograd nodes, and what code that runs inside a backward can find out about it."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import applied, data, grad_of, leaf, node_of, noting


@case(report=PYTORCH + "pull/83226")
def node_pre_post_hooks(run_backward: RunBackward) -> Results:
    """Asked for pre-hooks on a node as well as post-hooks.

    Right: pre-hooks rewrite what comes in, post-hooks what goes out, in registration order, and a removed hook no
    longer runs.
    """
    log: list[str] = []
    x = leaf(3, seed=9)
    y = x * 7
    node = node_of(y)
    pre1 = node.register_prehook(noting(log, "pre1", lambda gradients: (gradients[0] * 2,)))
    node.register_prehook(noting(log, "pre2", lambda gradients: (gradients[0] + 1,)))

    def post(results: Any, gradients: Any) -> Any:
        log.append(f"post {len(results)}")
        return results[0] - 1, results[1]

    node.register_hook(post)
    z = y.sum()
    run_backward(lambda: z.backward(retain_graph=True))
    first = grad_of(x).clone()
    x.grad = None
    pre1.remove()
    run_backward(z.backward)
    return {"log": log, "first": first, "second": x.grad}


@case()
def node_hooks_see_undefined(run_backward: RunBackward) -> Results:
    """Node hooks see None for gradients that are not there, on both sides, and may put something in or take it out."""
    log: list[str] = []

    def described(values: Any) -> str:
        return " ".join("None" if v is None else f"{tuple(v.shape)}" for v in values)

    x, w, constant = leaf(4, 6, seed=1), leaf(6, seed=2), data(4, 3, seed=3)
    first, second = (x * w).split(3, dim=1)
    split = node_of(first)
    split.register_prehook(lambda gradients: log.append("pre " + described(gradients)))
    split.register_hook(
        lambda results, gradients: log.append(f"post {described(results)}, {described(gradients)}")
    )
    product = second * constant
    node = node_of(product)
    node.register_hook(
        lambda results, gradients: log.append(f"post {described(results)}, {described(gradients)}")
    )
    stopped = x * 2
    node_of(stopped).register_hook(lambda results, gradients: (None, None))
    loss = product.sum() + stopped.sum()
    run_backward(loss.backward)
    return {"log": log, "x": x.grad, "w": w.grad}


@case()
def all_kinds_of_hooks_on_one_tensor(run_backward: RunBackward) -> Results:
    """Every kind of hook on one inner tensor, in no good order of registration, with backward() and grad()."""
    log: list[str] = []
    x = leaf(3, seed=1)
    h = x * 2
    node = node_of(h)
    node.register_hook(lambda results, gradients: log.append(f"node-post {gradients[0].sum().item()!r}"))
    node.register_prehook(noting(log, "node-pre", lambda gradients: (gradients[0] * 3,)))
    h.retain_grad()
    h.register_hook(noting(log, "tensor", lambda g: g + 1))
    y = h.sin().sum()
    run_backward(lambda: y.backward(retain_graph=True))
    log.append("grad of h")
    (gh,) = run_backward(lambda: torch.autograd.grad(y, h, retain_graph=True))
    log.append("grad of x")
    (gx,) = run_backward(lambda: torch.autograd.grad(y, x, retain_graph=True))
    log.append("grad of both")
    both = run_backward(lambda: torch.autograd.grad(y, (x, h)))
    return {"log": log, "x": x.grad, "h": h.grad, "gh": gh, "gx": gx, "both": both}


@case()
def hooks_of_root(run_backward: RunBackward) -> Results:
    """Hooks of what backward() is called on: of a result, of a leaf, and of a result that another root leads to."""
    log: list[str] = []
    x = leaf(3, seed=1)
    x.register_hook(noting(log, "x", lambda g: g * 2))
    x.register_post_accumulate_grad_hook(noting(log, "x accumulated"))
    run_backward(lambda: x.backward(torch.ones(3)))
    h = x.exp()
    y = h.sum()
    h.register_hook(noting(log, "h", lambda g: g + 1))
    y.register_hook(noting(log, "y", lambda g: g * 3))
    node_of(y).register_prehook(noting(log, "y node"))
    run_backward(lambda: torch.autograd.backward([h, y, x], [torch.ones(3), None, torch.ones(3)]))
    return {"log": log, "x": x.grad}


@case()
def current_node_inside_hooks(run_backward: RunBackward) -> Results:
    """Code inside a backward can ask which node runs; it is the one whose hook, function or accumulator it is."""
    log: list[str] = []

    def current(place: str) -> None:
        node = torch._C._current_autograd_node()
        log.append(f"{place}: {None if node is None else node.name()}")

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> Tensor:
            return t.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            current("function")
            return gradient

    x = leaf(3, seed=1)
    h = x * 2
    z = applied(Identity, h).sin()
    h.register_hook(lambda g: current("tensor hook"))
    node_of(z).register_prehook(lambda gradients: current("node pre-hook"))
    node_of(z).register_hook(lambda results, gradients: current("node post-hook"))
    x.register_hook(lambda g: current("leaf hook"))
    x.register_post_accumulate_grad_hook(lambda p: current("post-accumulate hook"))
    run_backward(z.sum().backward)
    current("outside")
    return {"log": log}


@case()
def current_task_inside_hooks(run_backward: RunBackward) -> Results:
    """Code inside a backward can ask which backward it is in, and which nodes that one will run."""
    log: list[str] = []
    x, w = leaf(3, seed=1), leaf(3, seed=2)
    h = x * w
    nodes = {"x": node_of(x), "w": node_of(w), "h": node_of(h)}
    seen: list[int] = []

    def ask(gradient: Tensor) -> None:
        seen.append(torch._C._current_graph_task_id())
        keeps = torch._C._autograd._get_current_graph_task_keep_graph()
        for name, node in nodes.items():
            try:
                log.append(f"{name} {torch._C._will_engine_execute_node(node)} {keeps}")
            except RuntimeError as error:
                log.append(f"{name} {error} {keeps}")

    z = h.sin()
    z.register_hook(ask)
    loss = z.sum()
    run_backward(lambda: loss.backward(retain_graph=True))
    run_backward(lambda: loss.backward(inputs=[x], retain_graph=True))
    run_backward(lambda: torch.autograd.grad(loss, w, retain_graph=True))
    run_backward(loss.backward)
    outside = torch._C._current_graph_task_id()
    distinct = len(set(seen))
    return {"log": log, "distinct": distinct, "none": -1 in seen, "outside": outside}


@case()
def execution_order_inside_hook(run_backward: RunBackward) -> Results:
    """Code inside a backward can ask for the order in which the nodes will run."""
    log: list[str] = []
    x, w = leaf(3, seed=1), leaf(3, seed=2)
    z = ((x * w).sin() + x.exp()).sum()

    order = vars(torch._C)["_current_graph_task_execution_order"]  # torch's types leave it out

    def ask(gradient: Tensor) -> None:
        log.extend(node.name() for node in order())

    z.register_hook(ask)
    with torch.autograd.set_multithreading_enabled(False):
        run_backward(lambda: z.backward(retain_graph=True))
        run_backward(lambda: torch.autograd.grad(z, w))
    return {"log": log, "x": x.grad}


@case(differs="the engine makes a node for the roots, which takes a number, before it hands a backward over")
def sequence_numbers_are_not_used_up(run_backward: RunBackward) -> Results:
    """Nodes are numbered as they are made; a backward without create_graph makes none."""
    x = leaf(3, seed=1)
    numbers = []
    for create_graph in (False, True, False, True):
        y = (x.sin() * x).sum()
        before = node_of(y)._sequence_nr()
        run_backward(partial(torch.autograd.grad, y, x, create_graph=create_graph))
        numbers.append(node_of(x * 2)._sequence_nr() - before)
    return {"numbers": numbers}
