"""Which operators of torch a call makes, as a profiler sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd.profiler import profile

COMPOSITE = {"conj", "contiguous", "narrow", "reshape", "reshape_as", "size", "sym_size", "to"}
"""Operators that autograd looks into."""


def recorded(call: Callable[[], object]) -> Any:
    """The profiler's event around a call; what happened inside are its ``cpu_children``."""
    with profile() as events, torch.profiler.record_function("the call"):
        call()
    return next(event for event in events.function_events if event.name == "the call")


def outermost(event: Any) -> Iterator[Any]:
    """The operators that autograd sees inside an event, as events: not what they call in turn."""
    for child in event.cpu_children:
        is_operator = operator_name(child) is not None
        if is_operator:
            yield child
        if not is_operator or operator_name(child) in COMPOSITE:
            yield from outermost(child)


def operator_name(event: Any) -> str | None:
    """``mm`` for an event of ``aten::mm``; None for others."""
    name: str = event.name
    return name.removeprefix("aten::") if name.startswith("aten::") else None
