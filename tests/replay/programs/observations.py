"""What can be seen of a backward from outside, written down as it happens, so that two runs can be compared.

Tensors are copied when they are seen: a backward writes in place to what it showed to a hook before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from tests.oracle.compare import tensor_difference

_EVENTS_BEFORE = 6
"""How many events are told before the first that differs."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A tensor as it was when it was seen."""

    facts: dict[str, object]
    values: torch.Tensor

    def __str__(self) -> str:
        told = ("shape", "strides", "version", "grad_fn")
        facts = ", ".join(f"{name} {self.facts[name]}" for name in told if self.facts.get(name) is not None)
        return f"tensor({facts}, values {self.values.flatten()[:4].tolist()})"


def snapshot(tensor: torch.Tensor | None) -> Snapshot | None:
    """Everything that can be asked of a tensor, and its values."""
    if tensor is None:
        return None
    return Snapshot(_facts(tensor), tensor.detach().clone())


def _facts(tensor: torch.Tensor) -> dict[str, object]:
    facts: dict[str, object] = {
        "type": type(tensor).__name__,
        "dtype": tensor.dtype,
        "layout": tensor.layout,
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "grad_fn": None if tensor.grad_fn is None else tensor.grad_fn.name(),
        "retains_grad": tensor.retains_grad,
        "version": tensor._version,
        "is_view": tensor._is_view(),
    }
    if tensor.layout == torch.strided and not tensor.is_nested:
        facts |= {
            "shape": tuple(tensor.shape),
            "strides": tensor.stride(),
            "storage_offset": tensor.storage_offset(),
            "is_conj": tensor.is_conj(),
            "is_neg": tensor.is_neg(),
        }
    return facts


def snapshot_difference(expected: Snapshot | None, actual: Snapshot | None) -> str:
    """In which way ``actual`` differs, or an empty text."""
    if expected is None or actual is None:
        if expected is actual:
            return ""
        return f"expected {expected}, got {actual}"
    for fact, value in expected.facts.items():
        if actual.facts.get(fact) != value:
            return f"expected {fact} {value}, got {actual.facts.get(fact)}"
    return tensor_difference(expected.values, actual.values)


@dataclass(frozen=True, eq=False)
class Event:
    """Something that happened, and the tensors that were seen when it did."""

    what: str
    tensors: tuple[Snapshot | None, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.what, *map(str, self.tensors)])


def event_difference(expected: Event, actual: Event) -> str:
    """In which way ``actual`` differs, or an empty text."""
    if expected.what != actual.what or len(expected.tensors) != len(actual.tensors):
        return f"expected {expected}, got {actual}"
    for position, (left, right) in enumerate(zip(expected.tensors, actual.tensors, strict=True)):
        if found := snapshot_difference(left, right):
            return f"{expected.what}: tensor {position}: {found}"
    return ""


@dataclass
class Log:
    """What was seen in one run."""

    events: list[Event] = field(default_factory=list)
    """In order."""
    births: set[str] = field(default_factory=set)
    """Names of objects whose death is told."""
    deaths: dict[str, int] = field(default_factory=dict)
    """How many events there were when each of them died."""
    has_hooks: bool = False
    """Whether any was registered, which could tell in which order things happen."""

    def add(self, what: str, tensors: Sequence[torch.Tensor | None] = ()) -> None:
        self.events.append(Event(what, tuple(map(snapshot, tensors))))

    def add_error(self, where: str, error: BaseException) -> None:
        self.add(f"{where} raised {type(error).__name__}: {error}")

    def add_death(self, name: str) -> None:
        self.deaths[name] = len(self.events)


def log_difference(expected: Log, actual: Log) -> str:
    """The first event that differs, or the first object that lives longer than expected; or an empty text."""
    for position, event in enumerate(expected.events):
        if position == len(actual.events):
            found = f"expected {event}, got nothing more"
        else:
            found = event_difference(event, actual.events[position])
        if found:
            return _with_context(expected, position, found)
    if len(actual.events) > len(expected.events):
        position = len(expected.events)
        return _with_context(expected, position, f"expected nothing more, got {actual.events[position]}")
    return _lifetime_difference(expected, actual)


def _lifetime_difference(expected: Log, actual: Log) -> str:
    """Only what lives longer counts: an error leaves eager with gradients that it frees in its next backward."""
    for name, position in sorted(expected.deaths.items(), key=lambda death: death[1]):
        dies = actual.deaths.get(name)
        if dies is None or dies > position:
            when = "never" if dies is None else f"before event {dies}, {_told(actual, dies)}"
            return _with_context(expected, position, f"expected {name} to die by now, it does {when}")
    return ""


def _told(log: Log, position: int) -> str:
    return str(log.events[position]) if position < len(log.events) else "the end"


def _with_context(log: Log, position: int, found: str) -> str:
    before = log.events[max(0, position - _EVENTS_BEFORE) : position]
    return "\n".join([f"event {position}: {found}", "after:", *(f"  {event}" for event in before)])
