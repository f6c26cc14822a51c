"""Which gradients are asked for: inputs=, autograd.grad and its options, gradient edges."""

from __future__ import annotations

from functools import partial

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from tests.cases.registry import Results, RunBackward, case
from tests.cases.values import data, leaf, noting, raised_by


@case()
def backward_inputs_non_leaf(run_backward: RunBackward) -> Results:
    """backward(inputs=[...]) with inner tensors, with an inner tensor and what lies behind it, with a root."""
    log: list[str] = []
    x, w = leaf(3, seed=1), leaf(3, seed=2)
    out: list[object] = []
    for pick in range(5):
        x.grad = w.grad = None
        h = x * w
        z = h.sin()
        loss = z.sum()
        h.register_hook(noting(log, f"{pick} h", lambda g: g * 2))
        z.register_hook(noting(log, f"{pick} z"))
        z.retain_grad()
        inputs = ([h], [h, x], [z, w], [loss, h], [x, x, h])[pick]
        try:
            run_backward(partial(loss.backward, inputs=inputs))
        except RuntimeError as error:
            out.append(str(error))
        out += [x.grad, w.grad, h.grad if pick != 2 else None, z.grad]
    return {"log": log, "out": out}


@case()
def grad_of_unused(run_backward: RunBackward) -> Results:
    """grad() of what does not lead to the output: an error, None, or zeros, as asked."""
    x, unused, later = leaf(3, seed=1), leaf(2, seed=2), leaf(4, seed=3)
    y = x.exp().sum()
    no_path = later * 2
    results: Results = {}
    results["error"] = raised_by(
        run_backward, lambda: torch.autograd.grad(y, [x, unused], retain_graph=True), "allow_unused"
    )
    inputs = [unused, x, no_path, later, x]
    results["none"] = run_backward(
        lambda: torch.autograd.grad(y, inputs, retain_graph=True, allow_unused=True)
    )
    results["zeros"] = run_backward(
        lambda: torch.autograd.grad(y, inputs, retain_graph=True, materialize_grads=True)
    )
    constant = data(3, seed=4)
    results["no grad"] = raised_by(
        run_backward, lambda: torch.autograd.grad(y, [constant], retain_graph=True)
    )
    results["no graph"] = raised_by(run_backward, lambda: torch.autograd.grad(constant.sum(), x))
    results["empty"] = raised_by(run_backward, lambda: y.backward(inputs=[]))
    results["not scalar"] = raised_by(run_backward, lambda: torch.autograd.grad(x.exp(), x))
    results["freed"] = run_backward(lambda: torch.autograd.grad(y, x))
    results["again"] = raised_by(run_backward, lambda: torch.autograd.grad(y, x), "second time")
    return results


@case()
def grad_with_unused_only(run_backward: RunBackward) -> Results:
    """Nothing that is asked for is reached, under hooks of what lies between."""
    log: list[str] = []
    x, unused = leaf(3, seed=1), leaf(2, seed=2)
    h = x.exp()
    h.register_hook(noting(log, "h"))
    y = h.sum()
    y.register_hook(noting(log, "y"))
    got = run_backward(lambda: torch.autograd.grad(y, [unused], allow_unused=True, retain_graph=True))
    run_backward(lambda: y.backward(inputs=[unused]))
    return {"log": log, "got": got, "x": x.grad, "unused": unused.grad}


@case()
def grad_of_root_itself(run_backward: RunBackward) -> Results:
    """grad of an output with respect to itself, of a leaf with respect to itself, of one input named twice."""
    x = leaf(3, seed=1)
    y = x * 2
    y.register_hook(lambda g: g * 3)
    x.register_hook(lambda g: g + 1)
    v = data(3, seed=2)
    results: Results = {
        "itself": run_backward(lambda: torch.autograd.grad(y, y, v, retain_graph=True)),
        "both": run_backward(lambda: torch.autograd.grad(y, [y, x], v, retain_graph=True)),
        "leaf": run_backward(lambda: torch.autograd.grad(x, x, v)),
        "twice": run_backward(lambda: torch.autograd.grad(y, [x, x], v, retain_graph=True)),
        "two roots": run_backward(lambda: torch.autograd.grad([y, y, x], [x, y], [v, v * 2, v * 3])),
    }
    return {**results, "v": v}


@case()
def grad_through_edges(run_backward: RunBackward) -> Results:
    """Gradient edges as outputs and as inputs, of a node with several outputs and of one whose tensor is gone."""
    x = leaf(4, 3, seed=1)
    first, second = (x * 2).split(2)
    edge = get_gradient_edge(second)
    inner = get_gradient_edge(x)
    del second
    (through,) = run_backward(
        lambda: torch.autograd.grad(edge, [inner], grad_outputs=data(2, 3, seed=2), retain_graph=True)
    )
    gone = get_gradient_edge(x.sin())
    run_backward(lambda: torch.autograd.backward(gone, data(4, 3, seed=3)))
    loss = first.exp().sum()
    others = [GradientEdge(edge.node, 0), edge]
    got = run_backward(lambda: torch.autograd.grad(loss, others, allow_unused=True))
    return {"through": through, "got": got, "x": x.grad}


@case()
def subsets_take_turns(run_backward: RunBackward) -> Results:
    """One kept graph asked for other subsets again and again, in turns with whole backwards."""
    log: list[str] = []
    ws = [leaf(3, seed=seed) for seed in range(3)]
    for at, w in enumerate(ws):
        w.register_hook(noting(log, f"hook {at}"))
    h = (ws[0] * ws[1]).sin()
    loss = (h * ws[2]).exp().sum()
    out: list[object] = []
    for step in range(18):
        chosen = [ws[at] for at in range(3) if (step * 5) >> at & 1]
        if step % 6 == 5 or not chosen:
            run_backward(lambda: loss.backward(retain_graph=True))
            out += [w.grad for w in ws]
        elif step % 2:
            run_backward(partial(loss.backward, inputs=chosen, retain_graph=True))
            out += [w.grad for w in ws]
        else:
            out += run_backward(partial(torch.autograd.grad, loss, chosen, retain_graph=True))
        for w in ws:
            w.grad = None
    return {"log": log, "out": out}


@case()
def grads_batched(run_backward: RunBackward) -> Results:
    """is_grads_batched: several gradients at once through matrix products, views, in-place changes and a hook."""
    log: list[str] = []
    x, w = leaf(3, seed=1), leaf(3, 4, seed=2)
    base = (x @ w).view(2, 2) * 1.0
    base[0].mul_(2)
    y = base.sin().reshape(-1)
    base.register_hook(lambda g: log.append(str(tuple(g.shape))))
    rows = torch.eye(4)
    jacobian = run_backward(
        lambda: torch.autograd.grad(y, [x, w], rows, is_grads_batched=True, retain_graph=True)
    )
    plain = run_backward(lambda: torch.autograd.grad(y, [x, w], rows[0]))
    wrong = raised_by(run_backward, lambda: torch.autograd.grad(y, x, torch.ones(3), is_grads_batched=True))
    return {"log": log, "jacobian": jacobian, "plain": plain, "wrong": wrong}


@case()
def subsets_through_odd_nodes(run_backward: RunBackward) -> Results:
    """Subsets of inputs behind copies of slices, lists of tensors, recurrent cells and nodes with optional inputs."""
    torch.manual_seed(3)
    leaves = [leaf(3, 4, seed=seed) for seed in range(4)]
    a, b, c, d = leaves
    cell = torch.nn.GRUCell(4, 4)
    base = a * 1.0
    base[1].mul_(b[0])
    base[:, 2].add_(c[:, 1])
    h = torch.cat([base, c, cell(d, a)]).view(3, 3, 4)
    h = torch.nn.functional.layer_norm(h, (4,), b[1], d[2])
    h = torch.nn.functional.scaled_dot_product_attention(h, h * c, torch.stack([a, b, d]))
    loss = torch.addcmul(h, a, b).sin().sum()
    out: list[object] = []
    for step in range(1, 16):
        chosen = [leaves[at] for at in range(4) if step >> at & 1]
        out += run_backward(partial(torch.autograd.grad, loss, chosen, retain_graph=True))
        run_backward(partial(loss.backward, inputs=chosen, retain_graph=True))
        out += [one.grad for one in leaves]
        for one in leaves:
            one.grad = None
    return {"out": out}
