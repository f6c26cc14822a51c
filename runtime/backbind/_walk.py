"""The walk over a live graph, as records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from backbind import _C


@dataclass(frozen=True, slots=True)
class Slot:
    """Input ``input`` of step ``step``: where gradients arrive and are summed."""

    step: int
    input: int


@dataclass(frozen=True, slots=True)
class Fit:
    """Shape and dtype that a gradient must be brought to, as its value has them."""

    sizes: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Target:
    """Where a computed gradient goes."""

    slot: Slot
    fit: Fit | None
    """None where it is known to fit already."""


@dataclass(frozen=True, slots=True)
class WalkStep:
    """One node, in the engine's order."""

    node: str
    """Name of the node: ``MulBackward0``, ``torch::autograd::AccumulateGrad``."""
    operator: str | None
    """Name of its operator; None where it has none or does not run."""
    incoming: int
    """How many gradients it takes."""
    runs: bool
    """False where its incoming gradient is only handed out."""
    hooks: tuple[str, ...]
    """Kinds of hooks on it, in words."""
    packed: tuple[object, ...]
    """``(needs_input_grad, *saved)``"""
    targets: tuple[Target | None, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """All steps of a backward, where its roots enter, and where the wanted gradients are found."""

    steps: tuple[WalkStep, ...]
    roots: tuple[Slot | None, ...]
    gradients: tuple[Slot | None, ...]

    @staticmethod
    def over(roots: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> Walk:
        """Walk from ``roots`` towards ``wanted``. Raises RuntimeError where a tensor requires no grad."""
        steps, entries, gradients = _C.walk(list(roots), list(wanted))
        return Walk(
            tuple(_step(*step) for step in steps),
            tuple(_slot(slot) for slot in entries),
            tuple(_slot(slot) for slot in gradients),
        )


def _slot(raw: tuple[int, int] | None) -> Slot | None:
    return None if raw is None else Slot(*raw)


def _step(
    node: str,
    operator: str | None,
    incoming: int,
    runs: bool,
    hooks: list[str],
    packed: tuple[object, ...] | None,
    targets: list[_C.RawTarget | None],
) -> WalkStep:
    return WalkStep(
        node,
        operator,
        incoming,
        runs,
        tuple(hooks),
        () if packed is None else packed,
        tuple(None if target is None else _target(*target) for target in targets),
    )


def _target(step: int, number: int, fit: tuple[list[int], torch.dtype] | None) -> Target:
    return Target(Slot(step, number), None if fit is None else Fit(tuple(fit[0]), fit[1]))
