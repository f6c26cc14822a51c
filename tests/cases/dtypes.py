"""Complex numbers, lazy conjugation, low precision, autocast."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import applied, data, leaf, take_grad


@case(report=PYTORCH + "issues/51627")
def real_into_complex_cat(run_backward: RunBackward) -> Results:
    """A real tensor concatenated with a complex one got a complex gradient and an internal assert; right: real."""
    r, c = leaf(3, 2, seed=6), leaf(3, 2, seed=7, dtype=torch.complex64)
    w = leaf(4, 2, seed=8, dtype=torch.complex64)
    h = torch.cat([r * 2, c], -1) @ w
    loss = (h.abs() ** 2).sum() + (r * c).real.sum() + (c / (r.exp())).imag.sum()
    run_backward(loss.backward)
    return {"r": r.grad, "c": c.grad, "w": w.grad}


@case(report=PYTORCH + "issues/125186")
def mixed_dtype_grads(run_backward: RunBackward) -> Results:
    """Backward of an autocast forward used the wrong low precision.

    Right: backward uses the dtypes the forward saved, .grad has the parameter's dtype.
    """
    w, x = leaf(4, 4, seed=2), leaf(2, 4, seed=3)
    h16 = leaf(4, seed=4, dtype=torch.bfloat16)
    dtypes: list[str] = []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = functional.linear(x, w)
        y.register_hook(lambda g: dtypes.append(str(g.dtype)))
        z = functional.linear(y.relu(), w)
    loss = (z.float() * h16.double()).sum()
    run_backward(loss.backward)
    return {"w": w.grad, "x": x.grad, "h": h16.grad, "dtypes": dtypes}


@case()
def lazily_conjugated_gradients(run_backward: RunBackward) -> Results:
    """Gradients with a conjugate or negative bit, seen by hooks, returned, accumulated twice."""
    seen: list[str] = []
    z = leaf(3, seed=1, dtype=torch.complex64)
    w = leaf(3, 3, seed=2, dtype=torch.complex64)

    def note(gradient: Tensor) -> None:
        seen.append(f"{gradient.is_conj()} {gradient.is_neg()}")

    h = z.conj()
    h.register_hook(note)
    y = w.mH @ h
    y.register_hook(note)
    z.register_hook(note)
    loss = y.imag.sum() + (h.conj().imag * data(3, seed=3)).sum()
    given = data(3, seed=4, dtype=torch.complex64)
    got = run_backward(lambda: torch.autograd.grad(h, z, given.conj(), retain_graph=True))
    for _ in range(2):
        run_backward(lambda: loss.backward(retain_graph=True))
    run_backward(lambda: z.conj().backward(given.conj()))
    return {"seen": seen, "got": got, "z": z.grad, "w": w.grad}


@case()
def autocast_in_backward(run_backward: RunBackward) -> Results:
    """Whether autocast is on in a backward: in hooks and functions, called inside and outside of the region."""
    log: list[str] = []

    def mode() -> str:
        return f"{torch.is_autocast_enabled('cpu')} {torch.get_autocast_dtype('cpu')}"

    class Linear(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")  # type: ignore[untyped-decorator]
        def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
            x, w = ctx.saved_tensors
            log.append(f"function {mode()} {gradient.dtype}")
            return gradient @ w.t(), x.t() @ gradient

    w = leaf(3, 3, seed=1)
    out = []
    for inside in (False, True, False):
        x = leaf(2, 3, seed=2)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = applied(Linear, x, w)
            h = functional.softmax(h @ w, -1)
            h.register_hook(
                lambda g: log.append(f"hook {mode()} {g.dtype} {(g.float() @ g.float().t()).dtype}")
            )
            if inside:
                run_backward(h.sum().backward)
        if not inside:
            run_backward(h.float().pow(2).sum().backward)
        out += [x.grad, take_grad(w)]
    return {"log": log, "out": out}


@case()
def hook_changes_dtype(run_backward: RunBackward) -> Results:
    """A hook returns another dtype, size or layout than it got: eager's words, or eager's conversion."""
    changes = {
        "double": lambda g: g.double(),
        "half": lambda g: g.half(),
        "size": lambda g: g[:1],
        "more": lambda g: g.expand(2, 3),
        "sparse": lambda g: g.to_sparse(),
        "number": lambda g: 1.0,
        "tuple": lambda g: (g,),
        "itself": lambda g: g,
    }
    results: Results = {}
    for name, change in changes.items():
        for place in ("inner", "leaf"):
            x = leaf(3, seed=1)
            h = x * 2
            (h if place == "inner" else x).register_hook(change)
            try:
                run_backward(h.exp().sum().backward)
                results[f"{name} {place}"] = x.grad
            except (RuntimeError, TypeError) as error:
                results[f"{name} {place}"] = f"{type(error).__name__}: {error}"
    return results
