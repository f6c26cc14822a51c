"""What is kept alive, and for how long."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import applied, data, leaf


class _Token:
    """Something that can be weakly referenced."""

    value: Tensor


class _Holder(torch.autograd.Function):
    """Twice the input, with a token and the input on ctx."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, token: _Token) -> Tensor:
        ctx.token = token
        ctx.save_for_backward(t)
        return t * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (t,) = ctx.saved_tensors
        return gradient * 2 + 0 * t, None


@contextmanager
def _without_collector() -> Iterator[None]:
    """What is freed here is freed because nothing refers to it."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Packer:
    """Packs tensors into boxes and counts those that are alive."""

    def __init__(self) -> None:
        self._boxes: list[weakref.ref[_Token]] = []

    def pack(self, t: Tensor) -> _Token:
        box = _Token()
        box.value = t.detach().clone()
        self._boxes.append(weakref.ref(box))
        return box

    @staticmethod
    def unpack(box: _Token) -> Tensor:
        return box.value

    def alive(self) -> str:
        return "".join("." if box() is None else str(at % 10) for at, box in enumerate(self._boxes))


@case(report=PYTORCH + "issues/94990")
def graph_freed_after_backward(run_backward: RunBackward) -> Results:
    """A cycle kept the graph and its activations alive.

    Right: with the loss gone nothing needs the garbage collector, and saved tensors go at the end of the backward.
    """
    packer = _Packer()
    with _without_collector():
        x = leaf(4, seed=4)
        token = _Token()
        reference = weakref.ref(token)
        with saved_tensors_hooks(packer.pack, packer.unpack):
            loss = applied(_Holder, x.exp().sin(), token).sum()
        del token
        run_backward(loss.backward)
        left = packer.alive()  # the loss is still alive here
        del loss
        return {"x": x.grad, "saved_left": left, "token_freed": reference() is None}


@case()
def saved_values_freed_one_by_one(run_backward: RunBackward) -> Results:
    """Every node's saved values are gone before the next node runs, in each step, for each kind of node."""
    log: list[str] = []
    w = leaf(4, 4, seed=1)
    with _without_collector():
        for step in range(3):
            packer = _Packer()
            x = leaf(2, 4, seed=step)
            with saved_tensors_hooks(packer.pack, packer.unpack):
                a = (x @ w).sin()
                b = applied(_Holder, a, _Token())
                c = torch.nn.functional.layer_norm(b * a, (4,))
                d = torch.cat([c, b], 1).logsumexp(1)
                base = d * 1.0
                base[0].mul_(d[1])
                loss = base.pow(2).sum()
            for name, t in (("a", a), ("b", b), ("c", c), ("d", d), ("x", x)):
                t.register_hook(lambda g, name=name, packer=packer: log.append(f"{name} {packer.alive()}"))
            w.register_post_accumulate_grad_hook(lambda p, packer=packer: log.append(f"w {packer.alive()}"))
            run_backward(partial(loss.backward, retain_graph=step == 1))
            log.append(f"{step} {packer.alive()}")
            del loss, a, b, c, d, base, x
            log.append(f"{step} {packer.alive()}")
    return {"log": log, "w": w.grad}


@case()
def gradients_freed_one_by_one(run_backward: RunBackward) -> Results:
    """A gradient is gone as soon as the node that took it has run, where nobody keeps it."""
    log: list[str] = []
    with _without_collector():
        for step in range(2):
            passed: list[StorageWeakRef] = []

            def watch(gradient: Tensor, passed: list[StorageWeakRef] = passed) -> None:
                log.append("".join("." if one.expired() else "#" for one in passed))
                passed.append(StorageWeakRef(gradient.untyped_storage()))

            x = leaf(64, seed=step)
            h = x * 2.0
            hs = [h]
            for _ in range(4):
                h = h.sin() * 1.5
                hs.append(h)
            for one in (*hs, x):
                one.register_hook(watch)
            run_backward((h * data(64, seed=9)).sum().backward)
            log.append("end " + "".join("." if one.expired() else "#" for one in passed))
            del x, h, hs, one
            log.append("all gone " + "".join("." if one.expired() else "#" for one in passed))
    return {"log": log}


@case()
def nothing_kept_after_step(run_backward: RunBackward) -> Results:
    """After a step whose tensors are dropped nothing of them is left: leaf, results, hooks and what hooks hold."""
    log: list[str] = []
    with _without_collector():
        for step in range(3):
            token, loss_token = _Token(), _Token()
            x = leaf(4, seed=step)
            h = applied(_Holder, x.exp(), token)
            h.retain_grad()
            h.register_hook(lambda g, kept=loss_token: None)
            loss = h.sum()
            run_backward(loss.backward)
            references = [weakref.ref(one) for one in (x, h, loss, token, loss_token)]
            storages = [StorageWeakRef(one.untyped_storage()) for one in (x, h, loss)]
            del x, h, loss, token, loss_token
            log.append(" ".join(str(one() is None) for one in references))
            log.append(" ".join(str(one.expired()) for one in storages))
    return {"log": log}


@case()
def nothing_kept_after_error(run_backward: RunBackward) -> Results:
    """The same where a hook raised in the middle."""
    log: list[str] = []
    with _without_collector():
        for step in range(3):
            packer = _Packer()
            x = leaf(4, seed=step)
            with saved_tensors_hooks(packer.pack, packer.unpack):
                h = x.exp().sin()
                loss = (h * h).exp().sum()

            def refuse(gradient: Tensor) -> None:
                raise ValueError("no")

            handle = h.register_hook(refuse)
            reference = weakref.ref(h)
            try:
                run_backward(loss.backward)
            except ValueError as error:
                log.append(str(error))
            log.append(packer.alive())
            handle.remove()
            del handle, refuse, x, h, loss
            log.append(f"{packer.alive()} {reference() is None}")
    return {"log": log}


@case()
def graph_dropped_while_it_runs(run_backward: RunBackward) -> Results:
    """A hook drops the last names of the graph that is being run: results, leaves, the hooked tensor itself."""
    log: list[str] = []
    x = leaf(4, seed=1)
    held: dict[str, Tensor] = {"middle": (x * 2).exp(), "other": leaf(4, seed=2)}
    held["loss"] = (held["middle"] * held["other"]).sin().sum()
    reference = weakref.ref(held["other"])

    def drop(gradient: Tensor) -> None:
        log.append("drop")
        held.clear()
        gc.collect()

    held["middle"].register_hook(drop)
    run_backward(lambda: held["loss"].backward())
    log.append(str(reference() is None))
    return {"log": log, "x": x.grad}


@case()
def very_deep_graph(run_backward: RunBackward) -> Results:
    """A chain of 50,000 nodes, deeper than a C stack: it runs, twice, and is freed."""
    x = leaf(2, seed=1)
    out = []
    for _ in range(2):
        h = x
        for _ in range(50_000):
            h = h * 1.0001
        token = _Token()
        reference = weakref.ref(token)
        loss = applied(_Holder, h, token).sum()
        del token, h
        run_backward(loss.backward)
        del loss
        out.append(reference() is None)
    return {"out": out, "x": x.grad}
