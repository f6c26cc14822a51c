"""Holds a table of preconditions against the nodes, and gives each node all of its preconditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..model.node import Model, NodeSpec
from ..model.precondition import Precondition
from ..parse.nearest import did_you_mean
from ..parse.report import Report
from ..parse.span import SourceFile, SourceText
from .calls import describe_saved, read_call
from .checks import Kind
from .rules import Exemptions, derived_preconditions
from .table import Entry, read_table

TORCH_TABLE = Path(__file__).with_name("torch.yaml")
"""The table for torch's own derivatives."""

TORCH_TABLE_NAME = "codegen/preconditions/torch.yaml"
"""What messages call it."""


@dataclass(frozen=True)
class _Stated:
    """What a table says of one node."""

    exemptions: Exemptions = field(default_factory=Exemptions)
    preconditions: tuple[Precondition, ...] = ()


def add_preconditions(model: Model, source: SourceFile, report: Report) -> Model:
    """The model with the preconditions of its nodes: those that follow by rule, then those that the table states."""
    stated: dict[str, _Stated] = {}
    for entry, nodes in _assign(read_table(source, report), model.nodes, report):
        stated |= _state(entry, nodes, report)
    return replace(model, nodes=tuple(_with_preconditions(node, stated) for node in model.nodes))


def _with_preconditions(node: NodeSpec, stated: Mapping[str, _Stated]) -> NodeSpec:
    of_node = stated.get(node.name, _Stated())
    derived = derived_preconditions(node, of_node.exemptions)
    return replace(node, preconditions=(*derived, *of_node.preconditions))


def _assign(
    entries: Sequence[Entry], nodes: Sequence[NodeSpec], report: Report
) -> list[tuple[Entry, list[NodeSpec]]]:
    """The nodes of each entry. What is said of one overload takes the place of what is said of all."""
    by_name = _entries_by_name(entries, nodes, report)
    assigned: list[tuple[Entry, list[NodeSpec]]] = [(entry, []) for entry in entries]
    for node in filter(_can_be_named, nodes):
        found = next((by_name[name] for name in _operator_names(node) if name in by_name), None)
        if found is not None:
            assigned[found][1].append(node)
    return assigned


def _entries_by_name(entries: Sequence[Entry], nodes: Sequence[NodeSpec], report: Report) -> dict[str, int]:
    """The position of the entry that names an operator."""
    known = {name for node in nodes if _can_be_named(node) for name in _operator_names(node)}
    others = {name for node in nodes for name in _operator_names(node)} - known
    found: dict[str, int] = {}
    places: dict[str, SourceText] = {}
    for position, entry in enumerate(entries):
        for operator in entry.operators:
            name = operator.text
            if name in places:
                hint = f"the other one is at line {places[name].span.line}; put the two together"
                report.error(operator.span, f"'{name}' stands in two entries", hint)
            elif name in others:
                message = f"an entry cannot name '{name}': its nodes are for lists or for a dispatch key"
                report.error(operator.span, message)
            elif name not in known:
                message = f"no operator '{name}' has derivatives"
                report.error(operator.span, message, did_you_mean(name, known))
            else:
                found[name], places[name] = position, operator
    return found


def _can_be_named(node: NodeSpec) -> bool:
    """Whether an entry can mean the node: nodes for lists and those of a dispatch key have other formulas."""
    return node.origin != "foreach" and node.dispatch_key == "Default"


def _operator_names(node: NodeSpec) -> tuple[str, str]:
    """The names by which an entry means the node, the narrower one first: with overload and without.

    The copying form of a view has the formulas of the view, and goes by its names.
    """
    base, dot, overload = node.operator.partition(".")
    if node.origin == "view_copy":
        base = base.removesuffix("_copy")
    return f"{base}{dot}{overload}", base


def _state(entry: Entry, nodes: Sequence[NodeSpec], report: Report) -> dict[str, _Stated]:
    """What an entry says of each of its nodes. A mistake is reported for the first node for which it is one."""
    exemptions = Exemptions(
        _saved_names(entry.optional, Kind.TENSOR, nodes, report),
        _saved_names(entry.exact_length, Kind.LENGTH, nodes, report),
        _saved_names(entry.may_be_empty, Kind.LENGTH, nodes, report),
    )
    preconditions: dict[str, list[Precondition]] = {node.name: [] for node in nodes}
    for check in entry.checks:
        for node in nodes:
            precondition = read_call(check, node, report)
            if precondition is None:
                break
            preconditions[node.name].append(precondition)
    return {name: _Stated(exemptions, tuple(checks)) for name, checks in preconditions.items()}


def _saved_names(
    listed: Iterable[SourceText], kind: Kind, nodes: Sequence[NodeSpec], report: Report
) -> frozenset[str]:
    return frozenset(
        value.text for value in listed if all(_is_saved(value, kind, node, report) for node in nodes)
    )


def _is_saved(value: SourceText, kind: Kind, node: NodeSpec, report: Report) -> bool:
    saved = {one.name: one for one in node.saved}
    found = saved.get(value.text)
    if found is None:
        hint = did_you_mean(value.text, saved) or describe_saved(node)
        report.error(value.span, f"'{node.operator}' saves no '{value.text}'", hint)
    elif not (found.has_length if kind is Kind.LENGTH else found.type.key == "tensor"):
        report.error(value.span, f"expected {kind.value}; '{found.name}' of '{node.operator}' is none")
    else:
        return True
    return False
