"""A table of preconditions as written, each part with its place, before anything is known about nodes.

The shape is checked here: which keys an entry has, that lists hold text. ``torch.yaml`` describes the entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..parse.nearest import did_you_mean, quoted
from ..parse.report import Report
from ..parse.span import SourceFile, SourceText, Span
from ..parse.yaml_source import describe, is_text
from ..parse.yaml_tree import MappingNode, Node, ScalarNode, SequenceNode, parse_tree

OPERATORS = "operators"
CHECKS = "checks"
OPTIONAL = "optional"
EXACT_LENGTH = "exact_length"
MAY_BE_EMPTY = "may_be_empty"
KEYS = (OPERATORS, CHECKS, OPTIONAL, EXACT_LENGTH, MAY_BE_EMPTY)

_HINT = "write '- operators: [<name>, ...]' and below it lines '<key>: [...]'"


@dataclass(frozen=True)
class Entry:
    """One item of a table."""

    operators: tuple[SourceText, ...]
    """``amax``, every overload of it, or ``sum.dim_IntList``."""
    checks: tuple[SourceText, ...]
    """``pooled(2, self, result1)``"""
    optional: tuple[SourceText, ...]
    """Saved tensors that the forward does not always have."""
    exact_length: tuple[SourceText, ...]
    """Saved lists for which one number does not stand for all."""
    may_be_empty: tuple[SourceText, ...]
    """Saved lists that may be empty."""


def read_table(source: SourceFile, report: Report) -> tuple[Entry, ...]:
    """The entries of a table; what has not the shape of one is reported and left out."""
    tree = parse_tree(source, report)
    if tree is None:
        return ()
    if not isinstance(tree, SequenceNode):
        report.error(_first_line(tree), f"expected a list of entries, found {describe(tree)}", _HINT)
        return ()
    entries = (_read_entry(item, report) for item in tree.items)
    return tuple(entry for entry in entries if entry is not None)


def _read_entry(node: Node, report: Report) -> Entry | None:
    if not isinstance(node, MappingNode):
        report.error(_first_line(node), f"expected an entry, found {describe(node)}", _HINT)
        return None
    lists: dict[str, tuple[SourceText, ...]] = {}
    for key, value in node.pairs:
        if key.text in KEYS:
            lists[key.text] = _read_list(key, value, report)
        else:
            hint = did_you_mean(key.text, KEYS) or f"the keys are {quoted(KEYS)}"
            report.error(key.span, f"an entry has no key '{key.text}'", hint)
    if OPERATORS not in lists:
        report.error(_first_line(node), f"this entry has no '{OPERATORS}'", _HINT)
        return None
    return _entry(lists)


def _entry(lists: Mapping[str, tuple[SourceText, ...]]) -> Entry:
    return Entry(*(lists.get(key, ()) for key in KEYS))


def _read_list(key: ScalarNode, value: Node, report: Report) -> tuple[SourceText, ...]:
    if not isinstance(value, SequenceNode):
        report.error(_first_line(value), f"'{key.text}' must be a list, found {describe(value)}", _HINT)
        return ()
    texts = []
    for item in value.items:
        if isinstance(item, ScalarNode) and is_text(item) and item.text.strip():
            texts.append(item.source)
        else:
            report.error(_first_line(item), f"'{key.text}' holds {describe(item)}; expected text")
    return tuple(texts)


def _first_line(node: Node) -> Span:
    """A caret under a whole block would say nothing."""
    file, start = node.span.file, node.span.start
    line_end = file.text.find("\n", start)
    return Span(file, start, min(node.span.end, len(file.text) if line_end < 0 else line_end))
