"""Programs as data: what a forward computes, what hangs on it, and how its backward is asked for, step by step.

Nothing here refers to a tensor. A place is a number, taken modulo how many tensors there are when its turn comes, so
that every program can be run, and one from which statements were taken away still can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Places: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Do:
    """An operation on values; its results are values too."""

    operation: str
    at: Places
    """Its operands, the first place again where there are not enough."""


@dataclass(frozen=True)
class Hook:
    """A hook on a tensor, or on the node that it is a result of."""

    kind: str
    at: int
    does: str = "nothing"


@dataclass(frozen=True)
class Unhook:
    """A hook that was registered before is removed."""

    at: int


@dataclass(frozen=True)
class Saving:
    """Statements under saved_tensors_hooks."""

    how: str
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Checkpoint:
    """Operations that run again in the backward."""

    reentrant: bool
    body: tuple[Do, ...]
    at: Places = (0, 1)


@dataclass(frozen=True)
class Branch:
    """Statements that some steps leave out."""

    body: tuple[Statement, ...]


Statement: TypeAlias = Do | Hook | Unhook | Saving | Checkpoint | Branch


@dataclass(frozen=True)
class Ask:
    """How gradients are asked for."""

    roots: Places = (-1,)
    summed: bool = True
    """Whether the sum of the roots is the root, or they are with a gradient each."""
    inputs: Places | None = None
    grad: bool = False
    """Whether by torch.autograd.grad; otherwise by backward."""
    retain_graph: bool = False
    create_graph: bool = False
    again: bool = False
    """Whether the same is asked for once more."""


@dataclass(frozen=True)
class Change:
    """Something that is done to a value between forward and backward."""

    does: str
    at: int = 0


@dataclass(frozen=True)
class Step:
    """One run of the forward, and what is asked for then."""

    ask: Ask = Ask()
    rows: int = 2
    takes_branches: bool = True
    clears: Places | None = ()
    """Leaves whose .grad is set to None before; None stands for all of them."""
    before: tuple[Hook | Unhook, ...] = ()
    """What changes between the steps: hooks on leaves stay for the later ones."""
    special: bool = False
    """Whether the data has infinities, NaN, zeros of both signs, subnormals and the like."""
    changes: tuple[Change, ...] = ()
    """What is done between forward and backward."""


@dataclass(frozen=True)
class Program:
    """What is run in eager and under capture."""

    statements: tuple[Statement, ...]
    steps: tuple[Step, ...]
    frozen: tuple[str, ...] = ()
    """Names of leaves that do not require grad."""
