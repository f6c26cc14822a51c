"""What cases are written with: tensors with known contents, hooks that keep a log, errors as results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.cases.registry import Results, RunBackward


def data(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers that depend on the seed alone."""
    generator = torch.Generator().manual_seed(1000 + seed)
    return torch.randn(shape, generator=generator, dtype=dtype)


def leaf(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """The same, wanting a gradient."""
    return data(*shape, seed=seed, dtype=dtype).requires_grad_()


def grad_of(tensor: Tensor) -> Tensor:
    """The gradient that was accumulated. For those places where there must be one."""
    assert tensor.grad is not None, "the backward accumulated nothing"
    return tensor.grad


def take_grad(tensor: Tensor) -> Tensor:
    """The same, leaving None behind as ``zero_grad`` does."""
    gradient = grad_of(tensor).clone()
    tensor.grad = None
    return gradient


def node_of(tensor: Tensor) -> Any:
    """The node that made a tensor; for a leaf, the one that accumulates its gradient."""
    return torch.autograd.graph.get_gradient_edge(tensor).node


def noting(log: list[str], entry: str, change: Callable[[Any], object] | None = None) -> Callable[[Any], Any]:
    """A hook that writes ``entry`` into the log, and returns what ``change`` makes of the gradient."""

    def hook(gradient: Any) -> object:
        log.append(entry)
        return None if change is None else change(gradient)

    return hook


def raised_by(run_backward: RunBackward, action: Callable[[], object], *words: str) -> Results:
    """The error of something that must fail: its type and its whole text, in which ``words`` must be."""
    try:
        value = run_backward(action)
    except Exception as error:
        text = str(error)
        missing = [word for word in words if word not in text]
        assert not missing, f"{type(error).__name__}: {text!r} does not say {missing}"
        return {"error": type(error).__name__, "message": text}
    return {"error": None, "message": f"nothing was raised; the call returned {value!r}"}


def applied(function: type[torch.autograd.Function], *arguments: object) -> Any:
    """``function.apply``, which torch leaves untyped."""
    return function.apply(*arguments)
