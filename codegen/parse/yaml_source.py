"""Entries of a derivatives file as written, each part with its place, before anything is known about
operators.

The shape is checked here (an entry is a mapping with a name, a formula is text); whether names mean something
is judged in `codegen.check`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .nearest import did_you_mean_one_of, nearest_name
from .report import Report
from .span import SourceFile, SourceText, Span
from .yaml_tree import MappingNode, Node, ScalarNode, SequenceNode, parse_tree

NAME = "name"
DISPATCH = "dispatch"
OUTPUT_DIFFERENTIABILITY = "output_differentiability"
DEFAULT_KEY = "Default"
"""The dispatch key under which formulas stand that no key is given for."""

ENTRY_HINT = "write '- name: <schema>' and below it lines '<argument>: <formula>'"


@dataclass(frozen=True)
class RawFormula:
    """``self, other: mul_backward(grad, ...)``: names on the left, one formula for all of them."""

    key: SourceText
    names: tuple[SourceText, ...]
    """Arguments (a gradient) or outputs (a forward derivative). Example: ``self`` and ``other``."""
    source: SourceText
    """The formula. Its span leaves out quotes; `SourceText.part` finds any piece of it in the file."""

    @property
    def text(self) -> str:
        return self.source.text


@dataclass(frozen=True)
class RawDispatch:
    """The formulas of one dispatch key."""

    key: str
    """``Default``, or an autograd key such as ``AutogradNestedTensor``."""
    span: Span
    """The key; the entry's name if the entry has no ``dispatch``."""
    formulas: tuple[RawFormula, ...]


@dataclass(frozen=True)
class RawDifferentiability:
    """``output_differentiability: [True, False]``: a truth value or a condition in C++ per output."""

    key: Span
    span: Span
    """The list."""
    items: tuple[bool | SourceText, ...]
    item_spans: tuple[Span, ...]

    @property
    def truth_values(self) -> tuple[bool, ...]:
        """Which outputs may have a gradient; a condition counts as true."""
        return tuple(item is not False for item in self.items)


@dataclass(frozen=True)
class RawEntry:
    """One item of the file."""

    name: SourceText
    """The schema. Example: ``mul.Tensor(Tensor self, Tensor other) -> Tensor``."""
    span: Span
    """The whole entry."""
    dispatch: tuple[RawDispatch, ...]
    has_dispatch: bool
    """Whether the entry says ``dispatch:``; without it the only key is ``Default``."""
    output_differentiability: RawDifferentiability | None
    unknown: tuple[tuple[SourceText, Node], ...] = ()
    """Keys that no rule covers with their values: not a formula's text, or a formula beside ``dispatch``."""


def parse_entries(source: SourceFile, report: Report) -> tuple[RawEntry, ...]:
    """The entries of a derivatives file; what has not the shape of an entry is reported and left out."""
    tree = parse_tree(source, report)
    if tree is None:
        return ()
    if not isinstance(tree, SequenceNode):
        report.error(_start_of(tree), f"expected a list of entries, found {describe(tree)}", ENTRY_HINT)
        return ()
    entries = (_read_entry(item, report) for item in tree.items)
    return tuple(entry for entry in entries if entry is not None)


def describe(node: Node) -> str:
    """What a value is, for messages: ``a list``, ``the number '0'``."""
    if isinstance(node, SequenceNode):
        return "a list"
    if isinstance(node, MappingNode):
        return "a mapping"
    value = node.value
    if value is None or node.text == "":
        return "nothing"
    if isinstance(value, bool):
        return f"the truth value '{node.text}'"
    if isinstance(value, int | float):
        return f"the number '{node.text}'"
    return "text"


def is_text(node: Node) -> bool:
    """Whether a YAML loader would give text for it, not a number, a truth value or nothing."""
    return isinstance(node, ScalarNode) and isinstance(node.value, str)


def _read_entry(node: Node, report: Report) -> RawEntry | None:
    if not isinstance(node, MappingNode):
        report.error(_start_of(node), f"expected an entry, found {describe(node)}", ENTRY_HINT)
        return None
    fields = {key.text: (key, value) for key, value in node.pairs}
    if NAME not in fields:
        close = next((key for key, _ in node.pairs if nearest_name(key.text, [NAME])), None)
        hint = did_you_mean_one_of([NAME]) if close else "begin it with '- name: <the operator's schema>'"
        report.error(close.span if close else _start_of(node), f"this entry has no '{NAME}'", hint)
        return None
    name = fields[NAME][1]
    if not isinstance(name, ScalarNode) or not is_text(name) or not name.text.strip():
        report.error(
            _start_of(name), f"'{NAME}' must be the operator's schema, found {describe(name)}", ENTRY_HINT
        )
        return None
    others = [(key, value) for key, value in node.pairs if key.text not in (NAME, OUTPUT_DIFFERENTIABILITY)]
    dispatch, unknown = _read_dispatch(name, others, report)
    differentiability = fields.get(OUTPUT_DIFFERENTIABILITY)
    return RawEntry(
        name.source,
        node.span,
        dispatch,
        DISPATCH in fields,
        _read_differentiability(*differentiability, report) if differentiability else None,
        unknown,
    )


def _read_dispatch(
    name: ScalarNode, pairs: list[tuple[ScalarNode, Node]], report: Report
) -> tuple[tuple[RawDispatch, ...], tuple[tuple[SourceText, Node], ...]]:
    """The formulas of every dispatch key, and the keys of the entry that are none."""
    given = next((value for key, value in pairs if key.text == DISPATCH), None)
    if given is None:
        unknown: tuple[tuple[SourceText, Node], ...] = tuple(
            (key.source, value) for key, value in pairs if not isinstance(value, ScalarNode)
        )
        formulas = _read_formulas([pair for pair in pairs if isinstance(pair[1], ScalarNode)], report)
        return (RawDispatch(DEFAULT_KEY, name.source.span, formulas),), unknown
    unknown = tuple((key.source, value) for key, value in pairs if key.text != DISPATCH)
    hint = "write the autograd key, for example 'AutogradCUDA:', and below it the formulas"
    if not isinstance(given, MappingNode):
        message = f"'{DISPATCH}' must map dispatch keys to formulas, found {describe(given)}"
        report.error(_start_of(given), message, hint)
        return (), unknown
    blocks: list[RawDispatch] = []
    for key, value in given.pairs:
        if isinstance(value, MappingNode):
            blocks.append(RawDispatch(key.text, key.span, _read_formulas(list(value.pairs), report)))
        else:
            message = f"the dispatch key '{key.text}' must map arguments to formulas, found {describe(value)}"
            report.error(_start_of(value), message, hint)
            blocks.append(RawDispatch(key.text, key.span, ()))
    return tuple(blocks), unknown


def _read_formulas(pairs: list[tuple[ScalarNode, Node]], report: Report) -> tuple[RawFormula, ...]:
    formulas: list[RawFormula] = []
    for key, value in pairs:
        if not isinstance(value, ScalarNode) or not is_text(value):
            empty = isinstance(value, ScalarNode) and value.value is None
            message = (
                f"the formula of '{key.text}' is empty"
                if empty
                else f"the formula of '{key.text}' must be text, found {describe(value)}"
            )
            hint = "write a formula, or 'non_differentiable'" if empty else "put the formula in double quotes"
            report.error(key.span if empty else _start_of(value), message, hint)
        elif not value.text.strip():
            message = f"the formula of '{key.text}' is empty"
            report.error(value.span, message, "write a formula, or 'non_differentiable'")
        else:
            formulas.append(RawFormula(key.source, key.source.pieces(","), value.source))
    return tuple(formulas)


def _read_differentiability(key: ScalarNode, node: Node, report: Report) -> RawDifferentiability | None:
    hint = "write one True or False per output, for example [True, False]"
    if not isinstance(node, SequenceNode):
        message = f"'{OUTPUT_DIFFERENTIABILITY}' must be a list, found {describe(node)}"
        report.error(_start_of(node), message, hint)
        return None
    items: list[bool | SourceText] = []
    spans: list[Span] = []
    for item in node.items:
        value = item.value if isinstance(item, ScalarNode) else None
        if isinstance(value, bool):
            items.append(value)
        elif isinstance(item, ScalarNode) and isinstance(value, str) and value.strip():
            items.append(item.source)
        else:
            message = (
                f"'{OUTPUT_DIFFERENTIABILITY}' holds {describe(item)}; expected True, False or a condition"
            )
            report.error(_start_of(item), message, hint)
            return None
        spans.append(item.span)
    return RawDifferentiability(key.span, node.span, tuple(items), tuple(spans))


def _start_of(node: Node) -> Span:
    """The first line of a value: a caret under a whole block would say nothing."""
    file, start = node.span.file, node.span.start
    line_end = file.text.find("\n", start)
    return Span(file, start, min(node.span.end, len(file.text) if line_end < 0 else line_end))
