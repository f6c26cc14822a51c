"""Makes the model: torchgen's records and the places in the YAML, brought together and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .. import names
from ..installed.operators import Operators
from ..installed.torchgen_adapter import Derivatives, NodeRecord, SavedRecord
from .mode import LinkFacts, choose_mode
from .node import (
    Argument,
    Formula,
    Input,
    Mode,
    ModeChoice,
    Model,
    NodeSpec,
    Output,
    SavedValue,
    Skipped,
)
from .saved_types import saved_type_of
from .step_keys import step_keys

STRUCTS = "torch::autograd::generated"
"""The namespace of the node structs."""


@dataclass(frozen=True)
class EntryPlace:
    """Where an entry stands in the YAML."""

    line: int
    formula_lines: Mapping[tuple[str, tuple[str, ...]], int]
    """Line of a formula, by dispatch key and the inputs it is for."""
    formula_texts: Mapping[tuple[str, tuple[str, ...]], str]
    """Text of a formula as written."""


def build_model(
    derivatives: Derivatives,
    places: Mapping[str, EntryPlace],
    operators: Operators,
    facts: LinkFacts,
    torch_version: str,
    forced_mode: Mode | None = None,
    yaml_name: str = "derivatives.yaml",
) -> Model:
    """Build the model of every node.

    ``places`` maps an entry's schema to where it stands. ``forced_mode`` asks for delegates everywhere, or for inline
    code wherever it is possible (which is also the default).

    Raises:
        UnknownSavedTypeError: the type table lacks a type.
    """
    nodes = tuple(
        _build_node(record, places[record.entry_schema], operators, facts, forced_mode)
        for record in derivatives.nodes
    )
    skipped = tuple(
        Skipped(entry.schema, entry.reason, places[entry.schema].line) for entry in derivatives.skipped
    )
    return Model(torch_version, nodes, skipped, yaml_name)


def _build_node(
    record: NodeRecord,
    place: EntryPlace,
    operators: Operators,
    facts: LinkFacts,
    forced_mode: Mode | None,
) -> NodeSpec:
    inputs = tuple(Input(one.name, one.is_list) for one in record.inputs)
    formulas = tuple(_build_formulas(record, place))
    if forced_mode is Mode.DELEGATE:
        choice = ModeChoice(Mode.DELEGATE, "asked for on the command line")
    else:
        choice = choose_mode(formulas, inputs, record.origin == "foreach", facts)
    keys, called = step_keys(formulas, operators)
    return NodeSpec(
        name=record.node,
        operator=record.operator,
        forward_schema=record.schema,
        dispatch_key=record.dispatch_key,
        origin=record.origin,
        entry_schema=record.entry_schema,
        line=place.line,
        inputs=inputs,
        outputs=tuple(Output(one.name, one.is_list) for one in record.outputs),
        named_gradients=record.named_gradients,
        formulas=formulas,
        saved=_build_saved(record),
        choice=choice,
        struct=f"{STRUCTS}::{record.node}",
        step_keys=keys,
        step_operators=called,
    )


def _build_formulas(record: NodeRecord, place: EntryPlace) -> list[Formula]:
    formulas = []
    for one in record.formulas:
        # A foreach node may call its inputs otherwise than the entry that it is derived from.
        key = (record.dispatch_key, one.inputs)
        written = place.formula_texts.get(key, one.written)
        formulas.append(Formula(one.inputs, written, one.resolved, place.formula_lines.get(key, place.line)))
    return formulas


def _build_saved(record: NodeRecord) -> tuple[SavedValue, ...]:
    values = [_saved_value(one) for one in record.saved]
    values += [
        _saved_value(
            SavedRecord(names.list_size(one.name), "size_t", f"{one.name}.size()", False),
            field=names.list_size_field(one.name),
        )
        for one in record.inputs
        if one.is_list
    ]
    return tuple(values)


def _saved_value(record: SavedRecord, field: str | None = None) -> SavedValue:
    row = saved_type_of(record.ctype)
    return SavedValue(
        name=record.name,
        type=row,
        expression=record.expression,
        from_output=record.is_output,
        field=field if field is not None else names.field(record.name, row.is_tensor),
        arguments=tuple(
            Argument(names.argument(record.name, component.suffix), component) for component in row.components
        ),
    )
