"""Backwards that are differentiated themselves."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import data, leaf, node_of, noting, take_grad


@case(report=PYTORCH + "issues/91469")
def double_backward_basic(run_backward: RunBackward) -> Results:
    """Second-order gradients were silently wrong under compile; right: equal to eager (or a clear error)."""
    x = leaf(4, seed=5)
    y = (x**4).sum() + (x.sin() * x.exp()).sum()
    (g1,) = run_backward(lambda: torch.autograd.grad(y, x, create_graph=True))
    (g2,) = run_backward(lambda: torch.autograd.grad(g1.sum(), x, create_graph=True))
    (g3,) = run_backward(lambda: torch.autograd.grad(g2.sum(), x))
    return {"g1": g1, "g2": g2, "g3": g3}


@case(report=PYTORCH + "issues/88312")
def double_backward_module_hook(run_backward: RunBackward) -> Results:
    """Full-backward hooks plus a second backward raised; right: works, hook calls as in eager."""
    log: list[tuple[int, int]] = []
    module = torch.nn.Softplus()
    module.register_full_backward_hook(
        lambda m, results, gradients: log.append((len(results), len(gradients)))
    )
    x = leaf(3, seed=1)
    y = module(x * 1.0).pow(2).sum()
    (g,) = run_backward(lambda: torch.autograd.grad(y, x, create_graph=True))
    (gg,) = run_backward(lambda: torch.autograd.grad(g.sum(), x))
    return {"gg": gg, "log": log}


@case()
def hooks_under_create_graph(run_backward: RunBackward) -> Results:
    """Hooks run with grad mode on under create_graph, and what they do is differentiated in turn."""
    log: list[str] = []
    x, k = leaf(3, seed=1), leaf(3, seed=2)
    h = x.sin()
    h.register_hook(lambda g: g * k * g)
    h.register_hook(lambda g: log.append(f"tensor {torch.is_grad_enabled()} {g.requires_grad}"))
    node_of(h).register_prehook(lambda gradients: (gradients[0] + k,))
    x.register_hook(lambda g: log.append(f"leaf {torch.is_grad_enabled()} {g.requires_grad}"))
    x.register_post_accumulate_grad_hook(noting(log, "accumulated"))
    y = (h * h).sum()
    (g,) = run_backward(lambda: torch.autograd.grad(y, x, create_graph=True))
    run_backward(g.pow(2).sum().backward)
    return {"log": log, "g": g, "x": x.grad, "k": k.grad}


@case()
def gradient_penalty_training(run_backward: RunBackward) -> Results:
    """A penalty on the gradient's norm over several steps, with in-place activations and a normalisation."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 6), torch.nn.LayerNorm(6), torch.nn.Softplus(), torch.nn.Linear(6, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for step in range(4):
        x = leaf(3 + step % 2, 4, seed=step)
        score = model(x).square().mean()
        (g,) = run_backward(partial(torch.autograd.grad, score, x, create_graph=True))
        loss = score + (g.norm(dim=1) - 1).pow(2).mean()
        optimizer.zero_grad()
        run_backward(loss.backward)
        optimizer.step()
        losses.append(loss)
    return {"losses": losses, "parameters": list(model.parameters())}


@case()
def graph_of_gradients_is_the_same(run_backward: RunBackward) -> Results:
    """Under create_graph the gradients' own graph has the same nodes as in eager, in the same places."""

    def nodes(tensor: Tensor) -> list[str]:
        found, waiting = [], [tensor.grad_fn]
        seen: set[object] = set()
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            found.append(f"{node.name()} {[one and one.name() for one, _ in node.next_functions]}")
            waiting += [one for one, _ in node.next_functions]
        return found

    x, w = leaf(3, seed=1), leaf(3, 3, seed=2)
    h = (w @ x).sin() * x + x.sum()
    base = h * 1.0
    base[1:].mul_(x[:2])
    y = base.softmax(0).log().pow(2).sum()
    gx, gw = run_backward(lambda: torch.autograd.grad(y, (x, w), create_graph=True))
    return {"gx": gx, "gw": gw, "nodes": [nodes(gx), nodes(gw)]}


@case()
def jacobians_and_hessians(run_backward: RunBackward) -> Results:
    """torch.autograd.functional: jacobian, hessian, products with vectors, vectorised and not."""
    from torch.autograd import functional

    def function(x: Tensor, w: Tensor) -> Tensor:
        return ((w @ x).tanh() * x).sum()

    def many(x: Tensor) -> Tensor:
        return (x.exp() * x.flip(0)).cumsum(0)

    x, w, v = data(3, seed=1), data(3, 3, seed=2), data(3, seed=3)
    return {
        "jacobian": run_backward(lambda: functional.jacobian(many, x)),
        "vectorised": run_backward(lambda: functional.jacobian(many, x, vectorize=True)),
        "hessian": run_backward(lambda: functional.hessian(function, (x, w))),
        "hessian vectorised": run_backward(lambda: functional.hessian(function, (x, w), vectorize=True)),
        "vhp": run_backward(lambda: functional.vhp(lambda one: many(one).sum(), x, v)),
        "hvp": run_backward(lambda: functional.hvp(lambda one: many(one).sum(), x, v)),
        "jvp": run_backward(lambda: functional.jvp(many, x, v)),
    }


@case()
def inner_loop_of_meta_learning(run_backward: RunBackward) -> Results:
    """Several gradient steps that are themselves differentiated, for a growing number of them."""
    w, rate = leaf(3, seed=1), torch.tensor(0.1, requires_grad=True)
    out = []
    for steps in (1, 2, 3, 2):
        fast: Tensor = w
        for step in range(steps):
            inner = (fast * data(3, seed=step)).sin().pow(2).sum()
            (g,) = run_backward(partial(torch.autograd.grad, inner, fast, create_graph=True))
            fast = fast - rate * g
        run_backward(fast.pow(2).sum().backward)
        out += [take_grad(w), take_grad(rate)]
    return {"out": out}
