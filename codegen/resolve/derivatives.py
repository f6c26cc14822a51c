"""All nodes of a derivatives file: those that it writes, and those that are derived from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from .. import names
from ..parse.report import Report
from ..parse.schema import Schema
from .entry_node import entry_node
from .foreach import nodes_over_lists
from .records import Derivatives, EntryFormulas, ResolvedNode, SkippedEntry
from .view_copies import copies_of_views


def resolve_derivatives(
    entries: Sequence[EntryFormulas], schemas: Iterable[Schema], report: Report
) -> Derivatives:
    """The nodes of ``entries``, and those of operators among ``schemas`` that are derived from them.

    A view's entry gives its copying form a node, and an operator over lists gets one from the first entry whose
    operator it repeats, unless these operators have entries of their own. Formulas that cannot be derived so are
    reported.
    """
    written = {entry.schema.text for entry in entries}
    others = {schema.full_name: schema for schema in schemas if schema.text not in written}
    nodes = tuple(_entry_nodes(entries))
    every = (*nodes, *copies_of_views(nodes, others), *nodes_over_lists(nodes, others.values(), report))
    skipped = tuple(
        SkippedEntry(entry, _why_skipped(entry))
        for entry in entries
        if not any(of_key.formulas for of_key in entry.keys)
    )
    return Derivatives(tuple(sorted(every, key=lambda node: node.name)), skipped)


def _entry_nodes(entries: Iterable[EntryFormulas]) -> Iterator[ResolvedNode]:
    """The nodes that are written; those of operators that differ in their overloads alone are numbered."""
    numbers: Counter[str] = Counter()
    for entry in entries:
        for of_key in entry.keys:
            if of_key.formulas:
                stem = names.node_stem(entry.schema.name, of_key.key)
                yield entry_node(f"{stem}{numbers[stem]}", entry, of_key)
                numbers[stem] += 1


def _why_skipped(entry: EntryFormulas) -> str:
    if any(of_key.has_non_differentiable for of_key in entry.keys):
        return "every argument is marked non_differentiable"
    return "no gradient formula, only the differentiability of its outputs or a forward formula"
