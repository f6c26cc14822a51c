"""Nested tensors and subclasses of Tensor."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import data, leaf


@case(report=PYTORCH + "issues/132695")
def jagged_nested_tensor(run_backward: RunBackward) -> Results:
    """Broadcasting a jagged nested tensor against a vector; right: backward to the dense parts and to the vector."""
    a, b, s = leaf(5, 4, seed=7), leaf(3, 4, seed=8), leaf(4, seed=9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.as_nested_tensor([a, b], layout=torch.jagged)
        y = (nested * s).sin()
        run_backward(lambda: y.backward(gradient=torch.ones_like(y)))
    return {"a": a.grad, "b": b.grad, "s": s.grad}


@case()
def jagged_lengths_change(run_backward: RunBackward) -> Results:
    """Jagged tensors of other lengths in each step, through a linear layer, padding, a softmax and hooks."""
    seen: list[str] = []
    w = leaf(4, 3, seed=1)
    out: list[object] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step, lengths in enumerate(((2, 3), (5, 1), (1, 1, 4), (2, 3))):
            parts = [leaf(n, 4, seed=10 * step + at) for at, n in enumerate(lengths)]
            nested = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
            h = torch.nn.functional.silu(nested @ w)
            h.register_hook(lambda g: seen.append(f"{type(g).__name__} {g.layout} {g.is_nested}"))
            loss = h.values().pow(2).sum() + h.to_padded_tensor(0.5).sum()
            run_backward(loss.backward)
            out += [w.grad, *(part.grad for part in parts)]
    return {"seen": seen, "out": out}


@case()
def strided_nested_tensor(run_backward: RunBackward) -> Results:
    """The older nested layout, as a leaf and through operators, its gradient accumulated twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([data(2, 3, seed=1), data(4, 3, seed=2)], requires_grad=True)
        w = leaf(5, 3, seed=3)
        errors: list[str] = []
        for _ in range(2):
            h = torch.nn.functional.linear(nested, w)
            try:
                run_backward(torch.nested.to_padded_tensor(h.relu(), 0.0).sum().backward)
            except RuntimeError as error:
                errors.append(str(error))
        assert nested.grad is not None
        return {"errors": errors, "parts": list(nested.grad.unbind()), "w": w.grad}


class _Tagged(Tensor):
    """A subclass that keeps its type through operators."""


class _Wrapped(Tensor):
    """A subclass that wraps a tensor and notes every operator that runs on it."""

    noted: list[str]
    wrapped: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor, log: list[str]) -> _Wrapped:
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, strides=inner.stride(), requires_grad=inner.requires_grad
        )
        assert isinstance(made, _Wrapped)
        made.wrapped, made.noted = inner.detach(), log
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        found: list[_Wrapped] = []

        def unwrapped(value: object) -> object:
            if isinstance(value, _Wrapped):
                found.append(value)
                return value.wrapped
            return value

        results = func(*tree_map(unwrapped, args), **tree_map(unwrapped, kwargs or {}))
        log = found[0].noted
        log.append(str(func))
        return tree_map(lambda value: cls(value, log) if isinstance(value, Tensor) else value, results)


@case()
def subclass_keeps_its_type(run_backward: RunBackward) -> Results:
    """Leaves and inner values of a subclass: what type hooks see, and what type .grad has."""
    seen: list[str] = []
    x = leaf(3, seed=1).detach().as_subclass(_Tagged).requires_grad_()
    p = torch.nn.Parameter(data(3, seed=2).as_subclass(_Tagged))
    for _ in range(2):
        h = x * p
        h.register_hook(lambda g: seen.append(f"inner {type(g).__name__}"))
        x.register_hook(lambda g: seen.append(f"leaf {type(g).__name__}"))
        run_backward(h.sin().sum().backward)
    assert x.grad is not None
    assert p.grad is not None
    kinds = [type(x.grad).__name__, type(p.grad).__name__, type(p).__name__]
    return {"seen": seen, "kinds": kinds, "x": x.grad.as_subclass(Tensor), "p": p.grad.as_subclass(Tensor)}


@case()
def wrapper_subclass_sees_every_operator(run_backward: RunBackward) -> Results:
    """A subclass with __torch_dispatch__ gets the same operators in the same order, in fan-in, hooks, accumulation."""
    log: list[str] = []
    x, w = _Wrapped(leaf(3, seed=1), log), _Wrapped(leaf(3, 3, seed=2), log)
    for step in range(2):
        h = w @ x
        loss = (h.sin() * x + h).sum()
        h.register_hook(lambda g, step=step: log.append(f"hook {step} {type(g).__name__}"))
        log.append(f"backward {step}")
        run_backward(loss.backward)
    assert isinstance(x.grad, _Wrapped)
    assert isinstance(w.grad, _Wrapped)
    return {"log": log, "x": x.grad.wrapped, "w": w.grad.wrapped}
