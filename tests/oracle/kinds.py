"""The kind of a call: what about a node, its gradients and its saved values could take a formula down another path.

Two calls of one kind differ in numbers only. The second is not compared again, which is what lets every sample of
every operator be walked in minutes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import torch

_LARGEST = 4
"""Sizes and counts above it are one kind; below, each may be special to a formula."""


def kind_of_shape(shape: Sequence[int]) -> Hashable:
    """Number of dimensions, and of each whether it is empty, of one element (it may be broadcast) or longer."""
    return tuple(min(size, 2) for size in shape)


def kind_of_tensor(tensor: torch.Tensor) -> Hashable:
    """Everything but the sizes above one and the numbers."""
    if tensor.is_nested:
        return ("nested", tensor.dtype, tensor.layout, tensor.dim(), tensor.requires_grad)
    return (
        tensor.dtype,
        tensor.layout,
        kind_of_shape(tensor.shape),
        tensor.layout != torch.strided or tensor.is_contiguous(),
        tensor.is_conj(),
        tensor.is_neg(),
        tensor.requires_grad,
        type(tensor).__name__,
    )


def kind_of(value: object) -> Hashable:
    """The kind of a saved value of any type."""
    if isinstance(value, torch.Tensor):
        return kind_of_tensor(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return max(-_LARGEST, min(value, _LARGEST))
    if isinstance(value, torch.SymInt):
        return "symbolic"
    if isinstance(value, float):
        return _kind_of_number(value)
    if isinstance(value, complex):
        return ("complex", _kind_of_number(value.real), _kind_of_number(value.imag))
    if isinstance(value, (list, tuple)):
        return kind_of_list(
            [kind_of(one) for one in value], isinstance(next(iter(value), None), torch.Tensor)
        )
    assert isinstance(value, Hashable), f"a saved value of type {type(value).__name__}"
    return value


def kind_of_list(kinds: list[Hashable], of_tensors: bool) -> Hashable:
    """Formulas treat the tensors of a list alike: which kinds occur in it matters, not where."""
    return (min(len(kinds), _LARGEST), frozenset(kinds)) if of_tensors and len(kinds) > 1 else tuple(kinds)


def _kind_of_number(value: float) -> Hashable:
    if not math.isfinite(value):
        return str(value)
    if value == int(value):
        return ("whole", max(-_LARGEST, min(int(value), _LARGEST)))
    return ("fraction", value > 0, abs(value) < 1)
