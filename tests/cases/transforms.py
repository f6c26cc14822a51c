"""torch.func and forward-mode derivatives, whose tensors pass through the same engine."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import torch
import torch.autograd.forward_ad as fw
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from tests.cases.registry import Results, RunBackward, case
from tests.cases.values import applied, data, grad_of, leaf


@case()
def function_transforms(run_backward: RunBackward) -> Results:
    """grad, vjp, jacrev, hessian and vmap of grad, nested; then an ordinary backward, which is captured as ever."""

    def function(x: Tensor) -> Tensor:
        base = x * 2.0
        base[0].mul_(x[1])
        return (base.sin() * x).sum()

    def many(x: Tensor) -> Tensor:
        return x.exp() * x.flip(0)

    x, rows = data(3, seed=1), data(4, 3, seed=2)
    w = leaf(3, seed=3)
    func = torch.func

    def with_an_ordinary_one() -> Tensor:
        gradient: Tensor = func.grad(function)(x)
        (w * gradient).sum().backward()
        return gradient

    pullback = func.vjp(many, x)[1]
    return {
        "grad": run_backward(lambda: func.grad(function)(x)),
        "grad of grad": run_backward(lambda: func.grad(lambda one: func.grad(function)(one).sum())(x)),
        "vjp": run_backward(lambda: pullback(x)),
        "jacrev": run_backward(lambda: func.jacrev(many)(x)),
        "hessian": run_backward(lambda: func.hessian(function)(x)),
        "vmap of grad": run_backward(lambda: func.vmap(func.grad(function))(rows)),
        "grad of vmap": run_backward(lambda: func.grad(lambda one: func.vmap(function)(one).sum())(rows)),
        "jvp of grad": run_backward(lambda: func.jvp(func.grad(function), (x,), (x.flip(0),))),
        "with an ordinary one": run_backward(with_an_ordinary_one),
        "w": w.grad,
    }


@case()
def transform_inside_ordinary_graph(run_backward: RunBackward) -> Results:
    """A gradient by torch.func is part of an ordinary loss, per sample, over steps of other sizes."""
    w = leaf(3, 3, seed=1)

    def energy(one: Tensor) -> Tensor:
        return (w @ one).sin().sum()

    out = []
    for n in (2, 4, 2):
        x = data(n, 3, seed=n)
        per_sample = run_backward(partial(torch.func.vmap(torch.func.grad(energy)), x))
        run_backward(per_sample.pow(2).sum().backward)
        out += [per_sample, w.grad]
        w.grad = None
    return {"out": out}


@case()
def forward_mode_over_backward(run_backward: RunBackward) -> Results:
    """Tangents flow through a backward: forward over reverse, with a hook and a broadcast between."""
    x, tangent, b = data(3, seed=1), data(3, seed=2), leaf(1, seed=3)
    with fw.dual_level():
        dual = fw.make_dual(x, tangent).requires_grad_()
        h = dual.sin() * b
        h.register_hook(lambda g: g * 2)
        y = (h * dual).sum()
        gx, gb = run_backward(lambda: torch.autograd.grad(y, (dual, b), create_graph=True))
        first, second = fw.unpack_dual(gx), fw.unpack_dual(gb)
        return {
            "gx": first.primal.detach().clone(),
            "tangent of gx": None if first.tangent is None else first.tangent.detach().clone(),
            "tangent of gb": None if second.tangent is None else second.tangent.detach().clone(),
        }


@case()
def backward_traced_by_make_fx(run_backward: RunBackward) -> Results:
    """A tracer that records the operators of a backward gets the same graph: real, fake, symbolic."""

    def function(x: Tensor, w: Tensor) -> Tensor:
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        h = (x @ w).sin() * x + x.sum(0)
        base = h * 1.0
        base[0].mul_(w[0])
        y = torch.nn.functional.layer_norm(base, (3,)).exp().sum()
        gx, gw = run_backward(lambda: torch.autograd.grad(y, (x, w)))
        return gx.sum() + gw.sum()

    x, w = data(4, 3, seed=1), data(3, 3, seed=2)
    return {
        "real": make_fx(function, tracing_mode="real")(x, w).print_readable(False),
        "fake": make_fx(function, tracing_mode="fake")(x, w).print_readable(False),
        "symbolic": make_fx(function, tracing_mode="symbolic")(x, w).print_readable(False),
    }


@case()
def backward_of_fake_tensors(run_backward: RunBackward) -> Results:
    """Tensors without data: gradients have sizes, types and strides, for sizes that are known and for symbols."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    seen: list[str] = []
    environment = ShapeEnv()
    mode = FakeTensorMode(shape_env=environment)
    for rows in (4, 7):
        with mode:
            x = mode.from_tensor(data(rows, 3, seed=1)).detach().requires_grad_()
            w = mode.from_tensor(data(3, 3, seed=2)).detach().requires_grad_()
            h = (x @ w).sin() * x + x.sum(0)
            loss = h.pow(2).mean()
            run_backward(loss.backward)
        for one in (x, w):
            gradient = grad_of(one)
            seen.append(
                f"{type(gradient).__name__} {tuple(gradient.shape)} {gradient.stride()} {gradient.dtype}"
            )
        seen.append(str(len(environment.guards)))
    return {"seen": seen}


@case()
def transform_inside_hook(run_backward: RunBackward) -> Results:
    """A hook and a function's backward use torch.func, which has an engine of its own to start."""

    def energy(one: Tensor) -> Tensor:
        return one.sin().sum()

    class Transformed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> Tensor:
            return t.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            jacobian: Tensor = torch.func.jacrev(energy)(gradient)
            return gradient + jacobian

    x = leaf(3, seed=1)
    for _ in range(2):
        h = x.exp()
        h.register_hook(lambda g: g * torch.func.grad(energy)(g))
        run_backward(applied(Transformed, h * 2).sum().backward)
    return {"x": x.grad}


@case()
def transform_in_another_thread(run_backward: RunBackward) -> Results:
    """One thread uses torch.func while another is inside a backward."""
    inside, done = threading.Event(), threading.Event()
    out: list[object] = []

    def other() -> None:
        assert inside.wait(15)
        try:
            out.append(torch.func.grad(lambda one: one.sin().sum())(data(3, seed=2)))
        except RuntimeError as error:
            out.append(str(error))
        done.set()

    def wait(gradient: Tensor) -> None:
        inside.set()
        assert done.wait(15)

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    x = leaf(3, seed=1)
    h = x.exp()
    h.register_hook(wait)
    run_backward(h.sum().backward)
    thread.join(15)
    return {"out": out, "x": x.grad}
