"""Saved tensors: packed, unpacked, offloaded, changed meanwhile, freed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import data, leaf, noting, raised_by, take_grad


@case(report=PYTORCH + "pull/134754", max_captures=1)
def pack_to_python_object(run_backward: RunBackward) -> Results:
    """Packed data that is not a tensor made each step recompile.

    Right: any object may be packed, each step unpacks its own, one capture.
    """
    w = leaf(3, seed=8)
    store: dict[str, Tensor] = {}
    out = []
    for step in range(3):

        def pack(t: Tensor, step: int = step) -> str:
            key = f"step{step}/item{len(store)}"
            store[key] = t.detach().clone()
            return key

        with saved_tensors_hooks(pack, store.pop):
            loss = ((w * (1.0 + data(3, seed=step))).cos()).sum()
        run_backward(loss.backward)
        out.append(take_grad(w))
    return {"out": out, "left": len(store)}


@case(report=PYTORCH + "issues/9391")
def inplace_on_saved_raises(run_backward: RunBackward) -> Results:
    """An output needed for backward was overwritten; right: RuntimeError about it, not a wrong gradient."""
    x = leaf(3, seed=1)
    y = x.sigmoid()
    y[1] = 2.0
    loss = y.sum()
    return raised_by(run_backward, loss.backward, "modified by an inplace operation")


@case(report=PYTORCH + "issues/197887")
def inplace_after_cached_capture_raises(run_backward: RunBackward) -> Results:
    """The same check must hold on a cache hit: the first backward is clean, the second one's tensor was changed."""
    w = leaf(4, seed=4)
    results: Results = {}
    for step in range(3):
        x = data(4, seed=step)
        loss = (x * w).sum()
        if step == 1:
            x.mul_(2)
            results.update(raised_by(run_backward, loss.backward, "modified by an inplace operation"))
        else:
            run_backward(loss.backward)
        results[f"w{step}"] = None if w.grad is None else w.grad.clone()
        w.grad = None
    return results


@case(report=PYTORCH + "pull/110367", max_captures=2)
def retain_graph_then_again(run_backward: RunBackward) -> Results:
    """retain_graph was refused; right: a kept graph can run again, and after the last run it is freed."""
    x, w = leaf(3, seed=6), leaf(3, seed=7)
    loss = (x * w).tanh().sum()
    for _ in range(2):
        run_backward(lambda: loss.backward(retain_graph=True))
    run_backward(loss.backward)
    results = raised_by(run_backward, loss.backward, "second time")
    return {**results, "x": x.grad, "w": w.grad}


@case()
def freed_trunk_of_two_losses(run_backward: RunBackward) -> Results:
    """The second of two losses meets the trunk that the first one freed: what ran before the error has its effect."""
    log: list[str] = []
    x, a, b = leaf(3, seed=1), leaf(3, seed=2), leaf(3, seed=3)
    trunk = x.exp()
    first, second = (trunk * a).sum(), (trunk * b).sin().sum()
    for name, t in (("a", a), ("b", b), ("x", x)):
        t.register_post_accumulate_grad_hook(noting(log, name))
    trunk.register_hook(noting(log, "trunk"))
    run_backward(first.backward)
    results = raised_by(run_backward, second.backward, "second time")
    y = x.pow(2).sum()
    run_backward(y.backward)
    return {**results, "log": log, "x": x.grad, "a": a.grad, "b": b.grad}


@case()
def saved_on_cpu(run_backward: RunBackward) -> Results:
    """Offloading saved tensors, nested in other hooks, in a stack of layers that is replayed."""
    packed: list[str] = []
    ws = [leaf(4, 4, seed=seed) for seed in range(3)]

    def pack(t: Tensor) -> Tensor:
        packed.append(str(tuple(t.shape)))
        return t.to(torch.bfloat16)

    out = []
    for step in range(3):
        h = data(2, 4, seed=step)
        with torch.autograd.graph.save_on_cpu():
            h = torch.nn.functional.gelu(h @ ws[0])
            with saved_tensors_hooks(pack, lambda t: t.float()):
                h = torch.nn.functional.layer_norm(h @ ws[1], (4,))
            h = (h @ ws[2]).softmax(-1)
        run_backward((h * h).sum().backward)
        out += [take_grad(w) for w in ws]
    return {"out": out, "packed": packed}


@case()
def unpack_when_engine_would(run_backward: RunBackward) -> Results:
    """Each saved tensor is unpacked when its node runs, after the node's pre-hooks and never earlier."""
    log: list[str] = []
    x, w = leaf(3, seed=1), leaf(3, seed=2)
    numbers = iter(range(100))

    def unpack(packed: tuple[int, Tensor]) -> Tensor:
        log.append(f"unpack {packed[0]}")
        return packed[1]

    with saved_tensors_hooks(lambda t: (next(numbers), t.clone()), unpack):
        first = x * w
        second = first.sin()
        third = (second * w).exp()
    for name, t in (("first", first), ("second", second), ("third", third)):
        t.register_hook(noting(log, f"hook {name}"))
        node = t.grad_fn
        assert node is not None
        node.register_prehook(noting(log, f"pre {name}"))
        node.register_hook(lambda results, gradients, name=name: log.append(f"post {name}"))
    x.register_hook(noting(log, "hook x"))
    loss = third.sum()
    run_backward(lambda: loss.backward(retain_graph=True))
    log.append("again")
    run_backward(lambda: torch.autograd.grad(loss, w))
    return {"log": log, "x": x.grad, "w": w.grad}


@case()
def unpack_raises(run_backward: RunBackward) -> Results:
    """An error while unpacking is raised as it is, and the next backward works."""

    class LostError(Exception):
        pass

    def unpack(packed: Tensor) -> Tensor:
        raise LostError(f"lost a tensor of {packed.numel()} numbers")

    x = leaf(3, seed=1)
    with saved_tensors_hooks(lambda t: t, unpack):
        loss = (x.exp() * 2).sum()
    results = raised_by(run_backward, loss.backward, "lost a tensor of 3")
    fine = (x.exp() * 2).sum()
    run_backward(fine.backward)
    return {**results, "x": x.grad}


@case()
def unpack_gives_something_else(run_backward: RunBackward) -> Results:
    """Unpacking gives what is no tensor, and a tensor of another size than what was packed."""
    results: Results = {}
    answers: dict[str, Callable[[Any], Any]] = {
        "no tensor": lambda t: 3,
        "size": lambda t: torch.ones(7),
        "none": lambda t: None,
    }
    for name, unpack in answers.items():
        x = leaf(3, seed=1)
        with saved_tensors_hooks(lambda t: t, unpack):
            loss = x.exp().sum()
        results[name] = raised_by(run_backward, loss.backward)
        results[f"x after {name}"] = x.grad
    return results


@case()
def unpack_runs_a_backward(run_backward: RunBackward) -> Results:
    """Unpacking computes the tensor again, with a backward of its own inside."""
    log: list[bool] = []
    x = leaf(3, seed=1)

    def unpack(packed: Tensor) -> Tensor:
        log.append(torch.is_grad_enabled())
        with torch.enable_grad():
            v = packed.detach().requires_grad_()
            (dv,) = torch.autograd.grad((v * v).sum() / 2, v)
        return dv

    with saved_tensors_hooks(lambda t: t.detach().clone(), unpack):
        loss = (x.sin().exp() * x).sum()
    run_backward(loss.backward)
    return {"log": log, "x": x.grad}


@case()
def mutation_on_saved_allowed(run_backward: RunBackward) -> Results:
    """Under allow_mutation_on_saved_tensors the value of the time of saving is used."""
    w = leaf(4, seed=4)
    out = []
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        for step in range(3):
            x = data(4, seed=step)
            loss = (x * w).sum()
            x.mul_(100)
            run_backward(loss.backward)
            out.append(take_grad(w))
    return {"out": out}


@case()
def saved_parameter_changed_by_hook(run_backward: RunBackward) -> Results:
    """A tied weight is updated in a hook while an earlier layer still needs it: an error, after what ran before it."""
    log: list[str] = []
    w, other = leaf(3, 3, seed=1), leaf(3, 3, seed=2)
    h = ((data(2, 3, seed=3) @ other) @ w).tanh()

    def update(gradient: Tensor) -> None:
        log.append("update")
        with torch.no_grad():
            w.mul_(0.5)

    h.register_hook(update)
    results = raised_by(run_backward, h.sum().backward, "modified by an inplace operation")
    return {**results, "log": log, "w": w.grad, "other": other.grad}
