"""What resolving gives: nodes, their resolved formulas, and what they save."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from .. import names
from ..parse.expression import Expression
from ..parse.formula import Formula, gather_formula
from ..parse.schema import Schema
from ..parse.span import Span


@dataclass(frozen=True)
class Value:
    """An argument or a result of the forward operator, as its formulas know it."""

    name: str
    """``self``, ``result``"""
    type: str
    """Its type in the schema, ``Tensor?``."""
    is_output: bool
    """Whether it is a result."""


@dataclass(frozen=True)
class Saved:
    """One value that the forward keeps for the node."""

    name: str
    """``self_sym_sizes``"""
    cpp_type: str
    """What the forward's expression gives: ``c10::SymIntArrayRef``."""
    expression: str
    """How the forward reads it: ``self.sym_sizes()``."""
    is_output: bool
    """Whether it comes from a result of the forward operator rather than from an argument."""


@dataclass(frozen=True)
class Edit:
    """A part of a formula in whose place something else is compiled."""

    start: int
    end: int
    """It stands for ``text[start:end]`` of the formula as written."""
    text: str
    """``self_sym_sizes``"""


@dataclass(frozen=True)
class ResolvedFormula:
    """One gradient formula over saved values."""

    inputs: tuple[str, ...]
    """Arguments whose gradients it computes, ``("self",)`` or several for one formula that returns a tuple."""
    written: Formula
    """As in the YAML, with its place there."""
    root: Expression
    """Over saved values; each expression still stands for the part of ``written`` that it was made from."""
    edits: tuple[Edit, ...]
    """Where ``root`` differs from what is written, in the order of the text."""
    saved: tuple[Saved, ...]
    """What it reads, in the order of the text."""

    @cached_property
    def text(self) -> str:
        """What is compiled: the formula as written, with the edits made in it."""
        parts: list[str] = []
        position = 0
        for edit in self.edits:
            parts += [self.written.text[position : edit.start], edit.text]
            position = edit.end
        return "".join([*parts, self.written.text[position:]])

    @cached_property
    def parsed(self) -> Formula:
        """The names, calls and methods of what is compiled."""
        return gather_formula(self.written.source, self.root)


@dataclass(frozen=True)
class KeyFormulas:
    """The gradient formulas of an operator for one dispatch key."""

    key: str
    """``Default``, or an autograd key."""
    formulas: tuple[ResolvedFormula, ...]
    has_non_differentiable: bool
    """Whether an argument is marked ``non_differentiable``."""


@dataclass(frozen=True)
class EntryFormulas:
    """One entry of a derivatives file, without a mistake in it."""

    schema: Schema
    """Of the forward operator."""
    span: Span
    """Where the entry names the operator."""
    keys: tuple[KeyFormulas, ...]
    """In the order of the file."""
    differentiability: tuple[bool, ...] | None
    """``output_differentiability``, where a condition counts as True; None without it."""


@dataclass(frozen=True)
class Input:
    """One argument of the forward that gets a gradient."""

    name: str
    is_list: bool
    """Whether it is a list of tensors: then the node has one output edge for each element."""

    @property
    def size_name(self) -> str | None:
        """The saved value that keeps the list's length, if it is a list."""
        return names.list_size(self.name) if self.is_list else None


@dataclass(frozen=True)
class Output:
    """One result of the forward whose gradient (or gradients, for a list) the node takes."""

    name: str
    is_list: bool


@dataclass(frozen=True)
class ResolvedNode:
    """One autograd node: what its entry, or the entry that it is derived from, says about it."""

    name: str
    """``MulBackward0``"""
    schema: Schema
    """Of the forward operator."""
    dispatch_key: str
    """``Default`` or the key of a per-key entry, ``AutogradNestedTensor``."""
    entry: EntryFormulas
    """The entry that it comes from, which for derived nodes is another operator's."""
    origin: str
    """``entry``, ``view_copy`` or ``foreach``: written in the YAML, or derived from an entry."""
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    named_gradients: tuple[str, ...]
    """``grad_<output>`` names in order of the node's incoming gradients."""
    formulas: tuple[ResolvedFormula, ...]
    """In the order of the arguments that they are for."""
    saved: tuple[Saved, ...]
    """In the order of the node struct's fields."""


@dataclass(frozen=True)
class SkippedEntry:
    """An entry that makes no node, and why."""

    entry: EntryFormulas
    reason: str


@dataclass(frozen=True)
class Derivatives:
    """All nodes of a derivatives file, by name, and the entries that make none."""

    nodes: tuple[ResolvedNode, ...]
    skipped: tuple[SkippedEntry, ...]


Values = Mapping[str, Value]
"""What the formulas of one operator may read, by name."""
