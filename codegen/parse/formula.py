"""What a formula says: its tree and, gathered from the tree, the names, calls, methods and gradients that it
uses.

Decisions about a formula (what to save, what to call, what is misspelt) are made from here, never from a
pattern over its text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .brackets import FormulaSyntaxError
from .expression import Call, Expression, Index, Literal, Member, Name, walk
from .expression_parser import parse_expression
from .span import SourceFile, SourceText, Span

__all__ = [
    "CallUse",
    "Formula",
    "FormulaSyntaxError",
    "IndexUse",
    "MethodUse",
    "NameUse",
    "gather_formula",
    "parse_formula",
]


class NameUse(NamedTuple):
    """A name that is used as a value: ``self``, or qualified ``at::Reduction::None``."""

    name: str
    start: int
    end: int


class CallUse(NamedTuple):
    """A function that is called by name: ``at::where(a, b, c)`` has the name ``at::where`` and three
    arguments.
    """

    name: str
    arguments: int
    start: int
    """Where the name stands, not its arguments."""
    end: int
    template_arguments: str | None = None


class MethodUse(NamedTuple):
    """A member that is called or read: ``self.sym_size(0)``, ``bias->sym_sizes()``."""

    name: str
    receiver: Expression
    arguments: tuple[Expression, ...] | None
    """None if the member is read, not called."""
    start: int
    """Where the member's name stands."""
    end: int

    @property
    def receiver_name(self) -> str | None:
        """The variable whose member it is, if it is a plain variable."""
        return self.receiver.plain if isinstance(self.receiver, Name) else None


class IndexUse(NamedTuple):
    """A variable with an index: ``grads[1]`` has position 1, ``grads[i]`` has None."""

    name: str
    position: int | None
    start: int
    end: int


class GradientIndex(NamedTuple):
    """``grads[position]``."""

    position: int
    start: int
    end: int


@dataclass(frozen=True)
class Formula:
    """A parsed formula. ``start`` and ``end`` of its parts count characters of ``source.text``."""

    source: SourceText
    root: Expression
    free_names: tuple[NameUse, ...]
    """Plain names used as values, each use: arguments, outputs, gradients, constants. No function names, no
    types.
    """
    qualified_names: tuple[NameUse, ...]
    """Names with ``::`` used as values."""
    calls: tuple[CallUse, ...]
    """Calls of functions by name, constructors such as ``std::vector<Tensor>(...)`` and casts among them."""
    methods: tuple[MethodUse, ...]
    indexed: tuple[IndexUse, ...]
    """Uses of plain names with an index."""

    @property
    def text(self) -> str:
        return self.source.text

    @cached_property
    def names(self) -> frozenset[str]:
        """The distinct names among `free_names`."""
        return frozenset(use.name for use in self.free_names)

    @cached_property
    def gradient_indices(self) -> tuple[GradientIndex, ...]:
        """Every ``grads[k]`` with a written number."""
        return tuple(
            GradientIndex(use.position, use.start, use.end)
            for use in self.indexed
            if use.name == "grads" and use.position is not None
        )

    @cached_property
    def uses_all_gradients(self) -> bool:
        """Whether ``grads`` occurs other than as ``grads[k]`` with a written number."""
        return sum(use.name == "grads" for use in self.free_names) > len(self.gradient_indices)

    def uses(self, name: str) -> bool:
        """Whether the variable ``name`` occurs."""
        return name in self.names

    def span(self, use: Expression | NameUse | CallUse | MethodUse | IndexUse | GradientIndex) -> Span:
        """The place in the file of a part of this formula."""
        return self.source.part(use.start, use.end)


def parse_formula(text: str | SourceText, span: Span | None = None) -> Formula:
    """Parse one formula.

    Args:
        text: the formula; as `SourceText` it brings its place along.
        span: where a plain ``text`` stands, character for character; without it the text is its own file.

    Raises:
        FormulaSyntaxError: the text is no expression; it says where and what was expected.
    """
    source = text if isinstance(text, SourceText) else _placed(text, span)
    return gather_formula(source, parse_expression(source.text))


def _placed(text: str, span: Span | None) -> SourceText:
    return SourceText(text, Span(SourceFile("<formula>", text), 0, len(text)) if span is None else span)


def gather_formula(source: SourceText, root: Expression) -> Formula:
    """The formula whose tree is ``root``; its expressions stand for parts of ``source``."""
    free_names: list[NameUse] = []
    qualified_names: list[NameUse] = []
    calls: list[CallUse] = []
    methods: list[MethodUse] = []
    indexed: list[IndexUse] = []
    for node, parent, bound in walk(root):
        call = parent if isinstance(parent, Call) and parent.function is node else None
        if isinstance(node, Name):
            if call is not None:
                count = len(call.arguments)
                calls.append(CallUse(node.qualified, count, node.start, node.end, node.template_arguments))
            elif len(node.path) > 1:
                qualified_names.append(NameUse(node.qualified, node.start, node.end))
            elif node.path[0] not in bound and not _is_braced_type(node, parent):
                free_names.append(NameUse(node.path[0], node.start, node.end))
        elif isinstance(node, Member):
            arguments = None if call is None else call.arguments
            end = node.name_start + len(node.name)
            methods.append(MethodUse(node.name, node.receiver, arguments, node.name_start, end))
        elif isinstance(node, Index) and isinstance(node.sequence, Name) and node.sequence.plain is not None:
            number = _written_number(node.position)
            indexed.append(IndexUse(node.sequence.plain, number, node.start, node.end))
    return Formula(
        source, root, tuple(free_names), tuple(qualified_names), tuple(calls), tuple(methods), tuple(indexed)
    )


def _written_number(node: Expression) -> int | None:
    # Python refuses to read numbers of thousands of digits; no index has more than nine.
    if isinstance(node, Literal) and node.text.isdecimal() and len(node.text) < 10:
        return int(node.text)
    return None


def _is_braced_type(node: Name, parent: Expression | None) -> bool:
    return getattr(parent, "type", None) is node
