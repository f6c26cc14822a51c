"""Modes that stand in for kernels, so that any value at all can travel through a node.

A forward under `ForwardStandIn` records its node with the true arguments, but no kernel runs, so none can refuse a
value. A backward under `StandIn` shows the ATen calls that the formula makes, and so what reached the formula.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class StandIn(TorchDispatchMode):
    """Answers operators with tensors of ones, and remembers the calls with all their arguments in a comparable form."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[str, object]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.stands_in_for(func, args):
            return func(*args, **kwargs)
        given = dict(zip((one.name for one in func._schema.arguments), args, strict=False)) | kwargs
        whole = [
            given.get(one.name, one.default_value) for one in func._schema.arguments
        ]  # torch leaves out defaults
        self.calls.append((str(func), form(whole)))
        size = len(args[0]) if args and isinstance(args[0], list) else 1
        answers = [_answer(str(one.type), size) for one in func._schema.returns]
        return answers[0] if len(answers) == 1 else tuple(answers)

    def stands_in_for(self, func: Any, args: Sequence[Any]) -> bool:  # noqa: ARG002
        """Whether the call is answered rather than made."""
        return (
            func is not torch.ops.aten.detach.default
        )  # that is how tensors are kept, not what a formula does


class ForwardStandIn(StandIn):
    """Answers only what is differentiated, so that values can be made as usual."""

    def stands_in_for(self, func: Any, args: Sequence[Any]) -> bool:  # noqa: ARG002
        return any(isinstance(one, Tensor) and one.requires_grad for one in inside(args))


def inside(values: Sequence[Any]) -> Iterator[Any]:
    """What is inside lists and tuples."""
    for one in values:
        if isinstance(one, list | tuple):
            yield from inside(one)
        else:
            yield one


def _answer(schema_type: str, size: int) -> object:
    if schema_type == "Tensor":
        return torch.ones(2, 3, dtype=torch.float64)
    if schema_type == "List[Tensor]":
        return [torch.ones(2, 3, dtype=torch.float64) for _ in range(size)]
    return False if schema_type == "bool" else 0


def form(value: object) -> object:
    """A value with its type, such that two values are equal only if nothing tells them apart.

    >>> form(0.0) == form(-0.0), form(1) == form(True), form(float("nan")) == form(float("nan"))
    (False, False, True)
    """
    if isinstance(value, Tensor):
        strided = value.layout == torch.strided and not value.is_nested
        return (
            "Tensor",
            value.dtype,
            value.layout,
            value.device,
            tuple(value.shape),
            value.stride() if strided else None,
            value.storage_offset() if strided else None,
        )
    if isinstance(value, float):
        return "float", "nan" if math.isnan(value) else struct.pack("d", value)
    if isinstance(value, complex):
        return "complex", form(value.real), form(value.imag)
    if isinstance(value, list | tuple):
        return "list", tuple(form(one) for one in value)
    if isinstance(value, Mapping):
        return "dict", tuple((name, form(one)) for name, one in sorted(value.items()))
    return type(value).__name__, value


def parts(value: object) -> list[object]:
    """The forms inside a form, itself first."""
    found = [value]
    if isinstance(value, list | tuple):
        for one in value:
            found += parts(one)
    return found
