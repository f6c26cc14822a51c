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
class Lifted:
    """Stands for a value that is not known when a graph is made: an item of one of the lists that it is called with
    (``inputs``, ``sizes``, ``scalars``), or of what a step unpacks when it runs (``unpacked``).
    """

    place: str
    index: int


@dataclass(frozen=True, slots=True)
class ExpectedGrad:
    """What the engine makes of a gradient before it goes on: the metadata of the value that it is the gradient of."""

    sizes: tuple[int | Lifted, ...]
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
class Accumulate:
    """What came in is added to the node's leaf."""

    leaf: torch.Tensor | Lifted


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
class CallHooks:
    """Hooks of one kind are called, if there are any: ``tensor_pre_hooks``, ``retain_grad``, ``pre_hooks`` or
    ``post_hooks``.
    """

    kind: str


@dataclass(frozen=True, slots=True)
class Release:
    """Saved values are let go of."""


Operation: TypeAlias = ReturnGrad | Call | Accumulate | ValidateGrads | AddToBuffer | CallHooks | Release

_HOOKS = {
    "tensor_pre_hooks": "tensor hook",
    "retain_grad": "retained gradient",
    "pre_hooks": "node pre-hook",
    "post_hooks": "node post-hook",
}
"""The operations that call hooks, and the name of the kind that each calls (csrc/hooks/node_hooks.h)."""


@dataclass(frozen=True, slots=True)
class LoweredStep:
    """One node, in the engine's order."""

    node: str
    """Name of the node: ``MulBackward0``, ``torch::autograd::AccumulateGrad``."""
    operator: str | None
    """Name of its operator; None where it has none or does not run."""
    kind: str | None
    """What a node is that runs and has no operator: ``accumulate_grad``, ``python``, ``copy_slices`` or ``cpp``."""
    num_inputs: int
    """How many gradients it takes."""
    hooks: tuple[str, ...]
    """Kinds of hooks on it, in words."""
    packed: tuple[object, ...]
    """``(needs_input_grad, *saved)``; empty where it has no operator."""
    operations: tuple[Operation, ...]
    live: _C.LiveNode | int | None
    """The live node, or its position among those that a graph is called with, if it runs code of a user."""

    def has_hooks(self, operation: CallHooks) -> bool:
        """Whether there is anything to call."""
        return _HOOKS[operation.kind] in self.hooks

    @property
    def has_pre_hooks(self) -> bool:
        """Whether hooks are called before the node is."""
        return any(_HOOKS[kind] in self.hooks for kind in ("tensor_pre_hooks", "retain_grad", "pre_hooks"))

    @property
    def unpacks(self) -> bool:
        """Whether a tensor that it saved has a hook that is called when the step runs."""
        return any(_is_unpacked(value) for value in self.packed)

    @property
    def is_foreign(self) -> bool:
        """Whether it runs code of a user, or code of which nothing is known."""
        return bool(self.hooks) or self.unpacks or self.kind in ("python", "copy_slices", "cpp")

    @property
    def leaf(self) -> torch.Tensor | Lifted | None:
        """The leaf that it accumulates into."""
        found = (one.leaf for one in self.operations if isinstance(one, Accumulate))
        return next(found, None)

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

    @staticmethod
    def of_records(roots: Sequence[tuple[int, int] | None], steps: Sequence[_C.RawStep]) -> Lowering:
        """That of a backward that the engine has begun: the gradients of its outputs are known to be valid."""
        return Lowering(
            tuple(Root(_input_ref(input_ref), None) for input_ref in roots),
            tuple(_step(*step) for step in steps),
        )


def _step(
    node: str,
    operator: str | None,
    kind: str | None,
    num_inputs: int,
    hooks: list[str],
    packed: tuple[object, ...] | None,
    operations: list[tuple[str, _C.RawOperand]],
    live: _C.LiveNode | int | None,
) -> LoweredStep:
    return LoweredStep(
        node,
        operator,
        kind,
        num_inputs,
        tuple(hooks),
        () if packed is None else tuple(map(_value, packed)),
        tuple(_operation(name, operand) for name, operand in operations),
        live,
    )


def _operation(name: str, operand: _C.RawOperand) -> Operation:
    match name:
        case "call":
            return Call()
        case "release":
            return Release()
        case "accumulate":
            leaf = _value(operand)
            assert isinstance(leaf, torch.Tensor | Lifted)
            return Accumulate(leaf)
        case "return_grad":
            input_nr, result = operand
            return ReturnGrad(input_nr, result)
        case "validate_grads":
            return ValidateGrads(tuple(map(_expected, operand)))
        case "add_to_buffer":
            edge, (step, input_nr) = operand
            return AddToBuffer(edge, InputRef(step, input_nr))
    return CallHooks(name)


def _value(raw: object) -> object:
    """A tuple stands for a value that is not known yet; lists are lists of values."""
    if isinstance(raw, tuple):
        return Lifted(*raw)
    if isinstance(raw, list) and any(isinstance(item, tuple) for item in raw):
        return [_value(item) for item in raw]
    return raw


def _is_unpacked(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_is_unpacked, value))
    return isinstance(value, Lifted) and value.place == "unpacked"


def _input_ref(raw: tuple[int, int] | None) -> InputRef | None:
    return None if raw is None else InputRef(*raw)


def _expected(raw: _C.RawExpected | None) -> ExpectedGrad | None:
    if raw is None:
        return None
    sizes, dtype, device = raw
    return ExpectedGrad(
        tuple(Lifted(*size) if isinstance(size, tuple) else size for size in sizes), dtype, device
    )
