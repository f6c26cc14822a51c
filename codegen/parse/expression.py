"""The tree of a formula: one frozen class per kind of C++ expression, each with its place in the formula's
text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Expression:
    """Any part of a formula; it is ``text[start:end]``."""

    start: int
    end: int

    def children(self) -> tuple[Expression, ...]:
        """The expressions directly inside this one, in the order of the text."""
        return ()


@dataclass(frozen=True, slots=True)
class Name(Expression):
    """A name, qualified or not: ``self``, ``at::where``, ``std::get<0>``, ``::std::nullopt``."""

    path: tuple[str, ...]
    """The parts between the ``::``; a leading ``::`` counts for nothing, since no formula depends on it."""
    template_arguments: str | None = None
    """The text between ``<`` and ``>``."""

    @property
    def plain(self) -> str | None:
        """The name if it is not qualified."""
        return self.path[0] if len(self.path) == 1 else None

    @property
    def qualified(self) -> str:
        return "::".join(self.path)


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A number, string, character, ``true``, ``false`` or ``nullptr``, as written."""

    text: str


@dataclass(frozen=True, slots=True)
class Unary(Expression):
    """``-x``, ``+x``, ``!x``, ``~x``, ``*x``, ``&x``."""

    operator: str
    operand: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    """``left operator right``."""

    operator: str
    left: Expression
    right: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Conditional(Expression):
    """``condition ? positive : negative``."""

    condition: Expression
    positive: Expression
    negative: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.condition, self.positive, self.negative)


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """``function(arguments)``; the function is a `Name`, a `Member` or any expression."""

    function: Expression
    arguments: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        return (self.function, *self.arguments)


@dataclass(frozen=True, slots=True)
class Member(Expression):
    """``receiver.name`` or ``receiver->name``."""

    receiver: Expression
    name: str
    name_start: int
    arrow: bool
    template_arguments: str | None = None

    def children(self) -> tuple[Expression, ...]:
        return (self.receiver,)


@dataclass(frozen=True, slots=True)
class Index(Expression):
    """``sequence[position]``."""

    sequence: Expression
    position: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.sequence, self.position)


@dataclass(frozen=True, slots=True)
class Braces(Expression):
    """``{a, b}``, or ``type{a, b}``."""

    items: tuple[Expression, ...]
    type: Name | None = None

    def children(self) -> tuple[Expression, ...]:
        return self.items if self.type is None else (self.type, *self.items)


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """``(type) operand``."""

    type: Name
    operand: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    """``[captures](type parameter) { statements }``."""

    parameters: tuple[str, ...]
    """Names that mean something inside the body only: parameters, and variables that the body declares."""
    body: tuple[Expression, ...]
    """The expressions of its statements."""

    def children(self) -> tuple[Expression, ...]:
        return self.body


def walk(root: Expression) -> Iterator[tuple[Expression, Expression | None, frozenset[str]]]:
    """Every expression with the one around it and the names that enclosing lambdas bind, in the order of the
    text.

    It keeps its own stack: a sum of a thousand terms is a tree a thousand deep, which Python's stack would
    not hold.
    """
    pending: list[tuple[Expression, Expression | None, frozenset[str]]] = [(root, None, frozenset())]
    while pending:
        item = pending.pop()
        yield item
        node, _, bound = item
        if isinstance(node, Lambda):
            bound = bound | frozenset(node.parameters)
        pending.extend((child, node, bound) for child in reversed(node.children()))
