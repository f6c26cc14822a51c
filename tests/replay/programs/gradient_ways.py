"""The ways in which gradients of an operator are asked for, and what is seen of each."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_leaves, tree_map

from tests.oracle.outcome import SEED
from tests.oracle.programs import Forward
from tests.replay.programs.observations import Log

Way: TypeAlias = Callable[[Log, torch.Tensor, list[torch.Tensor]], None]
"""Asks for gradients of a loss with respect to leaves, and logs them."""


def into_leaves(log: Log, loss: torch.Tensor, leaves: list[torch.Tensor]) -> None:
    loss.backward()
    log.add("gradients of the leaves", [leaf.grad for leaf in leaves])


def of_some(log: Log, loss: torch.Tensor, leaves: list[torch.Tensor]) -> None:
    some = leaves[::2]
    log.add("gradients of some", torch.autograd.grad(loss, some, allow_unused=True))
    log.add("gradients of the leaves", [leaf.grad for leaf in leaves])


def of_gradients(log: Log, loss: torch.Tensor, leaves: list[torch.Tensor]) -> None:
    gradients = torch.autograd.grad(loss, leaves, allow_unused=True, create_graph=True)
    log.add("gradients with a graph", gradients)
    log.add("gradients of the leaves", [leaf.grad for leaf in leaves])
    tracked = [one for one in gradients if one is not None and one.requires_grad]
    if tracked:
        weighted_sum(tracked).backward()
        log.add("gradients of gradients", [leaf.grad for leaf in leaves])


WAYS: tuple[Way, ...] = (into_leaves, of_some, of_gradients)


def run_way(way: Way, forward: Forward) -> Log:
    """Run a forward on fresh copies of its arguments and ask for gradients. Nothing is seen where there is no graph."""
    assert isinstance(forward, functools.partial)
    log = Log()
    args, kwargs = fresh((forward.args, forward.keywords))
    leaves = _leaves((args, kwargs))
    torch.default_generator.manual_seed(SEED)
    try:
        results = forward.func(*args, **kwargs)
    except Exception:
        return log
    tracked = [one for one in tree_leaves(results) if isinstance(one, torch.Tensor) and one.requires_grad]
    if not tracked or not leaves:
        return log
    loss = weighted_sum(tracked)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            way(log, loss, leaves)
        except Exception as error:
            log.add_error("the backward", error)
            log.add("gradients of the leaves", [leaf.grad for leaf in leaves])
    for one in caught:
        log.add(f"{one.category.__name__}: {one.message}")
    return log


def weighted_sum(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """A scalar in which no two elements weigh the same, so that no gradient is all ones."""
    generator = torch.Generator().manual_seed(SEED)
    terms = []
    for tensor in tensors:
        dense = tensor.to_dense() if tensor.layout != torch.strided else tensor
        real = torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense
        weights = torch.rand(real.shape, dtype=torch.float64, generator=generator).add_(0.5).to(real.dtype)
        terms.append((real * weights).sum().double())
    return torch.stack(terms).sum()


def fresh(arguments: Any) -> Any:
    """The same arguments with tensors in memory of their own; those that require grad become leaves."""
    made: dict[int, torch.Tensor] = {}

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in made:
            made[id(value)] = _copied(value).requires_grad_(value.requires_grad)
        return made[id(value)]

    return tree_map(copy, arguments)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg() or tensor.is_quantized:
        return tensor.clone()
    # Not clone(), which would give elements that share memory each its own.
    storage = tensor.untyped_storage().clone()
    return tensor.new_empty(0).set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def _leaves(arguments: Any) -> list[torch.Tensor]:
    found = [one for one in tree_leaves(arguments) if isinstance(one, torch.Tensor) and one.requires_grad]
    return list({id(one): one for one in found}.values())
