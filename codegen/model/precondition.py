"""What must hold for a node's arguments together, as data: which check is made of which arguments.

A live node never breaks these, because its forward checked them; an operator can be called with anything. The checks
themselves are written in C++ (csrc/nodes/preconditions.h).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operand:
    """What one parameter of a check is given."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The saved values that it is made of, by name."""
        return ()


@dataclass(frozen=True)
class Literal(Operand):
    """A number or a truth value, as C++ writes it: ``2``, ``-1``, ``true``."""

    text: str


@dataclass(frozen=True)
class _OfSaved(Operand):
    """Made of one saved value."""

    saved: str

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.saved,)


@dataclass(frozen=True)
class Value(_OfSaved):
    """A saved value itself."""


@dataclass(frozen=True)
class NamedValue(_OfSaved):
    """A saved value with its name, for the message."""


@dataclass(frozen=True)
class NamedTensor(_OfSaved):
    """A saved tensor with its name."""


@dataclass(frozen=True)
class Length(_OfSaved):
    """The length of a saved list with its name."""


@dataclass(frozen=True)
class Rank(_OfSaved):
    """How many dimensions a tensor has: a saved one, or the one that saved sizes are of."""


@dataclass(frozen=True)
class SymSizes(_OfSaved):
    """Saved sizes, plain or symbolic, as symbolic ones."""


@dataclass(frozen=True)
class Product(Operand):
    """Numbers, multiplied."""

    factors: tuple[Value | Literal, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for factor in self.factors for name in factor.reads)


@dataclass(frozen=True)
class Gradients(Operand):
    """All gradients."""


@dataclass(frozen=True)
class GradientCount(Operand):
    """The number of gradients with the name of the argument."""


@dataclass(frozen=True)
class NamedGradient(Operand):
    """One gradient with the name of the argument."""

    position: int


@dataclass(frozen=True)
class GradientRank(Operand):
    """How many dimensions one gradient has."""

    position: int


@dataclass(frozen=True)
class MissingTensor(Operand):
    """An undefined tensor in place of one that this node does not save, with the name that it has for others."""

    name: str


@dataclass(frozen=True)
class TensorList(Operand):
    """Several named tensors."""

    items: tuple[NamedTensor | NamedGradient | MissingTensor, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for item in self.items for name in item.reads)


@dataclass(frozen=True)
class Precondition:
    """One check. It is made only where a formula reads every saved value in it, too, because the forward keeps nothing
    that is not needed.
    """

    check: str
    """The name of a member of ``Preconditions``."""
    operands: tuple[Operand, ...]
    """All that it is given, the gradients included."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The saved values that it looks at, each once, by name."""
        return tuple(dict.fromkeys(name for operand in self.operands for name in operand.reads))
