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
class ExpectedGrad:
    """What the engine makes of a gradient before it goes on: the metadata of the value that it is the gradient of."""

    sizes: tuple[int, ...]
    dtype: torch.dtype | None
    """None where any dtype will do, as a leaf may say by its ``grad_dtype``."""
    device: torch.device | None
    """Given where the gradient has no dimensions and may come from another device."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where a gradient goes, and what it must be there."""

    slot: Slot
    expected: ExpectedGrad | None
    """None where the engine takes it as it is."""


@dataclass(frozen=True, slots=True)
class WalkStep:
    """One node, in the engine's order."""

    node: str
    """Name of the node: ``MulBackward0``, ``torch::autograd::AccumulateGrad``."""
    operator: str | None
    """Name of its operator; None where it has none or does not run."""
    kind: str | None
    """What a node is that runs and has no operator: ``python``, ``copy_slices`` or ``cpp``."""
    incoming: int
    """How many gradients it takes."""
    runs: bool
    """False where its incoming gradient is only returned."""
    hooks: tuple[str, ...]
    """Kinds of hooks on it, in words."""
    has_unpack_hooks: bool
    """Whether a tensor that it saved has a hook that must be called to have the tensor."""
    packed: tuple[object, ...]
    """``(needs_input_grad, *saved)``; empty where hooks or a missing operator stand in the way."""
    targets: tuple[Arrival | None, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """All steps of a backward, where the gradients of its outputs enter, and where those of its inputs are found."""

    steps: tuple[WalkStep, ...]
    outputs: tuple[Arrival | None, ...]
    gradients: tuple[Slot | None, ...]

    @staticmethod
    def over(
        outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], *, call_unpack_hooks: bool = False
    ) -> Walk:
        """Walk from ``outputs`` towards ``inputs``. Without ``call_unpack_hooks`` no code of a user is run.

        Raises:
            RuntimeError: a tensor requires no grad; a saved tensor was freed or changed in place.
        """
        steps, roots, gradients = _C.walk(list(outputs), list(inputs), call_unpack_hooks)
        return Walk(
            tuple(_step(*step) for step in steps),
            tuple(_arrival(root) for root in roots),
            tuple(None if slot is None else Slot(*slot) for slot in gradients),
        )


def _step(
    node: str,
    operator: str | None,
    kind: str | None,
    incoming: int,
    runs: bool,
    hooks: list[str],
    has_unpack_hooks: bool,
    packed: tuple[object, ...] | None,
    targets: list[_C.RawArrival | None],
) -> WalkStep:
    return WalkStep(
        node,
        operator,
        kind,
        incoming,
        runs,
        tuple(hooks),
        has_unpack_hooks,
        () if packed is None else packed,
        tuple(_arrival(target) for target in targets),
    )


def _arrival(raw: _C.RawArrival | None) -> Arrival | None:
    if raw is None:
        return None
    step, number, expected = raw
    if expected is None:
        return Arrival(Slot(step, number), None)
    sizes, dtype, device = expected
    return Arrival(Slot(step, number), ExpectedGrad(tuple(sizes), dtype, device))
