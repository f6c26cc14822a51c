"""The tree of a formula: one frozen class per kind of C++ expression, each with its place in the formula's
text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace


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


def replaced(root: Expression, replacements: Mapping[int, Expression]) -> Expression:
    """The tree with other expressions in the places of some, which are named by their ``id``.

    What a replacement puts in a place is taken as it is: nothing is replaced inside it. Like `walk`, it does without
    Python's stack.
    """
    order: list[Expression] = []
    pending = [root]
    while pending:
        node = pending.pop()
        order.append(node)
        if id(node) not in replacements:
            pending.extend(node.children())
    made: dict[int, Expression] = dict(replacements)
    for node in reversed(order):
        if id(node) not in made:
            before = node.children()
            after = tuple(made[id(child)] for child in before)
            same = all(new is old for new, old in zip(after, before, strict=True))
            made[id(node)] = node if same else _with_children(node, after)
    return made[id(root)]


def placed(root: Expression, start: int, end: int) -> Expression:
    """A small tree whose every expression stands for ``text[start:end]``: what code generation puts there."""
    children = tuple(placed(child, start, end) for child in root.children())
    moved = replace(root, start=start, end=end)
    if isinstance(moved, Member):
        moved = replace(moved, name_start=start)
    return _with_children(moved, children)


def _with_children(node: Expression, children: tuple[Expression, ...]) -> Expression:
    """The same expression around other ones; ``children`` are as many as, and in the order of, its own."""
    match node:
        case Unary():
            return replace(node, operand=children[0])
        case Cast():
            return replace(node, operand=children[0])
        case Binary():
            return replace(node, left=children[0], right=children[1])
        case Conditional():
            return replace(node, condition=children[0], positive=children[1], negative=children[2])
        case Call():
            return replace(node, function=children[0], arguments=children[1:])
        case Member():
            return replace(node, receiver=children[0])
        case Index():
            return replace(node, sequence=children[0], position=children[1])
        case Braces(type=None):
            return replace(node, items=children)
        case Braces():
            # A type has no value that anything could be put in the place of.
            return replace(node, items=children[1:])
        case Lambda():
            return replace(node, body=children)
    return node
