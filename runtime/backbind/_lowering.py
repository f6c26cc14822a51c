"""The lowering of a backward over a live graph, as records: what happens at each step, in the engine's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch

from backbind import _C


@dataclass(frozen=True, slots=True)
class InputRef:
    """Input ``input_nr`` of step ``step``: where gradients arrive and are summed."""

    step: int
    input_nr: int


@dataclass(frozen=True, slots=True)
class ExpectedGrad:
    """What the engine makes of a gradient before it goes on: the metadata of the value that it is the gradient of."""

    sizes: tuple[int, ...]
    dtype: torch.dtype | None
    """None where any dtype will do, as a leaf may say by its ``grad_dtype``."""
    device: torch.device | None
    """Given where the gradient has no dimensions and may come from another device."""


@dataclass(frozen=True, slots=True)
class ReturnGrad:
    """What came in at input ``input_nr`` is result number ``result`` of the backward."""

    input_nr: int
    result: int


@dataclass(frozen=True, slots=True)
class Call:
    """The node is called."""


@dataclass(frozen=True, slots=True)
class ValidateGrads:
    """What the node computed for each edge is brought to what is expected there."""

    expected: tuple[ExpectedGrad | None, ...]
    """None where the engine takes it as it is."""


@dataclass(frozen=True, slots=True)
class AddToBuffer:
    """What was computed for one edge is added to the input buffer that the edge leads to."""

    edge: int
    input: InputRef


@dataclass(frozen=True, slots=True)
class OnLiveNode:
    """Something that is done to live nodes, hooks or leaves alone, by its name in csrc/plan/lowering.h."""

    name: str


Operation: TypeAlias = ReturnGrad | Call | ValidateGrads | AddToBuffer | OnLiveNode


@dataclass(frozen=True, slots=True)
class LoweredStep:
    """One node, in the engine's order."""

    node: str
    """Name of the node: ``MulBackward0``, ``torch::autograd::AccumulateGrad``."""
    operator: str | None
    """Name of its operator; None where it has none or does not run."""
    kind: str | None
    """What a node is that runs and has no operator: ``python``, ``copy_slices`` or ``cpp``."""
    num_inputs: int
    """How many gradients it takes."""
    hooks: tuple[str, ...]
    """Kinds of hooks on it, in words."""
    has_unpack_hooks: bool
    """Whether a tensor that it saved has a hook that must be called to have the tensor."""
    packed: tuple[object, ...]
    """``(needs_input_grad, *saved)``; empty where hooks or a missing operator stand in the way."""
    operations: tuple[Operation, ...]

    @property
    def expected(self) -> tuple[ExpectedGrad | None, ...]:
        """What is expected of each gradient that the node computes."""
        found = (one.expected for one in self.operations if isinstance(one, ValidateGrads))
        return next(found, ())


@dataclass(frozen=True, slots=True)
class Root:
    """Where the gradient of an output enters; ``input`` is None where nothing behind the output is needed."""

    input: InputRef | None
    expected: ExpectedGrad | None


@dataclass(frozen=True, slots=True)
class Lowering:
    """A whole backward: where the gradients of its outputs enter, then its steps."""

    roots: tuple[Root, ...]
    steps: tuple[LoweredStep, ...]

    @staticmethod
    def of(
        outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], *, call_unpack_hooks: bool = False
    ) -> Lowering:
        """The backward from ``outputs`` to ``inputs``. Without ``call_unpack_hooks`` no code of a user is run.

        Raises:
            RuntimeError: a tensor requires no grad; a saved tensor was freed or changed in place.
        """
        roots, steps = _C.lower(list(outputs), list(inputs), call_unpack_hooks)
        return Lowering(
            tuple(Root(_input_ref(input_ref), _expected(expected)) for input_ref, expected in roots),
            tuple(_step(*step) for step in steps),
        )


def _step(
    node: str,
    operator: str | None,
    kind: str | None,
    num_inputs: int,
    hooks: list[str],
    has_unpack_hooks: bool,
    packed: tuple[object, ...] | None,
    operations: list[tuple[str, _C.RawOperand]],
) -> LoweredStep:
    return LoweredStep(
        node,
        operator,
        kind,
        num_inputs,
        tuple(hooks),
        has_unpack_hooks,
        () if packed is None else packed,
        tuple(_operation(name, operand) for name, operand in operations),
    )


def _operation(name: str, operand: _C.RawOperand) -> Operation:
    match name, operand:
        case "call", None:
            return Call()
        case "return_grad", (int(input_nr), int(result)):
            return ReturnGrad(input_nr, result)
        case "validate_grads", list(expected):
            return ValidateGrads(tuple(map(_expected, expected)))
        case "add_to_buffer", (int(edge), (step, input_nr)):
            return AddToBuffer(edge, InputRef(step, input_nr))
        case _, None:
            return OnLiveNode(name)
    raise AssertionError(f"csrc/python/lowering.cpp gave an operation {name!r} with {operand!r}")


def _input_ref(raw: tuple[int, int] | None) -> InputRef | None:
    return None if raw is None else InputRef(*raw)


def _expected(raw: _C.RawExpected | None) -> ExpectedGrad | None:
    if raw is None:
        return None
    sizes, dtype, device = raw
    return ExpectedGrad(tuple(sizes), dtype, device)
