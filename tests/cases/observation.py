"""What a case gave, as something that can be sent to another process and compared to the bit."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from tests.oracle.compare import tensor_difference

Observation: TypeAlias = object
"""None, a bool, a number, a text, an `ObservedTensor`, or a list, tuple or dict of them."""

_PLAIN = (bool, int, float, complex, str, bytes)


@dataclass(frozen=True)
class ObservedTensor:
    """A tensor and what a user can see of it beside its contents."""

    contents: bytes
    """The detached tensor as ``torch.save`` writes it."""
    kind: str
    """The Python type."""
    history: str
    """The node that it ends in, "a leaf" that wants a gradient, or "no graph"."""
    version: int
    """How often it was written in place."""
    is_view: bool

    @staticmethod
    def of(tensor: Tensor) -> ObservedTensor:
        buffer = io.BytesIO()
        torch.save(tensor.detach(), buffer)
        if tensor.grad_fn is not None:
            history = tensor.grad_fn.name()
        else:
            history = "a leaf" if tensor.requires_grad else "no graph"
        return ObservedTensor(
            buffer.getvalue(), type(tensor).__name__, history, tensor._version, tensor._is_view()
        )

    def tensor(self) -> Tensor:
        loaded = torch.load(io.BytesIO(self.contents), weights_only=False)
        assert isinstance(loaded, Tensor)
        return loaded


def observed(value: object) -> Observation:
    """What can be compared of a result.

    Raises:
        TypeError: it is of a type of which equality is not known to mean anything.
    """
    if isinstance(value, Tensor):
        return ObservedTensor.of(value)
    if isinstance(value, Mapping):
        return {str(key): observed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [observed(one) for one in value]
    if isinstance(value, tuple):
        return tuple(observed(one) for one in value)
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, torch.dtype | torch.layout | torch.device):
        return str(value)
    raise TypeError(f"a case returned a {type(value).__name__}: {value!r}; return tensors, numbers or texts")


def without_versions(value: Observation) -> Observation:
    """The observation without how often tensors were written in place: what is compiled writes in other places."""
    if isinstance(value, ObservedTensor):
        return replace(value, version=0)
    if isinstance(value, dict):
        return {key: without_versions(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_versions(one) for one in value]
    if isinstance(value, tuple):
        return tuple(without_versions(one) for one in value)
    return value


def difference(expected: Observation, actual: Observation, place: str = "result") -> str:
    """Where and in which way two observations differ, or an empty text."""
    if type(expected) is not type(actual):
        return f"{place}: expected {_short(expected)}, got {_short(actual)}"
    if isinstance(expected, ObservedTensor) and isinstance(actual, ObservedTensor):
        return _tensors_difference(expected, actual, place)
    if isinstance(expected, dict) and isinstance(actual, dict):
        if expected.keys() != actual.keys():
            return f"{place}: expected the names {sorted(expected)}, got {sorted(actual)}"
        return _first(difference(expected[key], actual[key], f"{place}.{key}") for key in expected)
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        # A log is read as a whole.
        is_log = all(isinstance(one, str) for one in (*expected, *actual))
        if is_log or len(expected) != len(actual):
            return "" if expected == actual else f"{place}: expected {_short(expected)}, got {_short(actual)}"
        pairs = zip(expected, actual, strict=True)
        return _first(difference(one, other, f"{place}[{at}]") for at, (one, other) in enumerate(pairs))
    if isinstance(expected, float) and isinstance(actual, float) and math.isnan(expected):
        return "" if math.isnan(actual) else f"{place}: expected nan, got {actual!r}"
    return "" if expected == actual else f"{place}: expected {_short(expected)}, got {_short(actual)}"


def _tensors_difference(expected: ObservedTensor, actual: ObservedTensor, place: str) -> str:
    for fact in ("kind", "history", "version", "is_view"):
        left, right = getattr(expected, fact), getattr(actual, fact)
        if left != right:
            return f"{place}: expected a tensor of {fact} {left!r}, got {right!r}"
    found = tensor_difference(expected.tensor(), actual.tensor())
    return f"{place}: {found}" if found else ""


def _first(found: Iterable[str]) -> str:
    return next((text for text in found if text), "")


def _short(value: Observation) -> str:
    if isinstance(value, ObservedTensor):
        return f"a tensor, {value.tensor()}"
    text = repr(value)
    return text if len(text) < 4000 else text[:4000] + " ..."
