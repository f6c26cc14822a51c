"""The node of an entry for one dispatch key: its inputs and outputs, its formulas, and what it saves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..parse.schema import Schema
from .outputs import named_gradients, node_outputs
from .records import EntryFormulas, Input, KeyFormulas, ResolvedFormula, ResolvedNode, Saved


def entry_node(name: str, entry: EntryFormulas, of_key: KeyFormulas) -> ResolvedNode:
    """The node ``name`` of an entry."""
    schema = entry.schema
    return ResolvedNode(
        name=name,
        schema=schema,
        dispatch_key=of_key.key,
        entry=entry,
        origin="entry",
        inputs=node_inputs(schema, of_key.formulas),
        outputs=node_outputs(schema, entry.differentiability, of_key.formulas),
        named_gradients=named_gradients(schema, entry.differentiability),
        formulas=in_argument_order(schema, of_key.formulas),
        saved=in_field_order(of_key.formulas),
    )


def node_inputs(schema: Schema, formulas: Iterable[ResolvedFormula]) -> tuple[Input, ...]:
    """The arguments that have a formula, in the order of the schema."""
    wanted = {name for formula in formulas for name in formula.inputs}
    return tuple(Input(one.name, one.is_list) for one in schema.formula_arguments if one.name in wanted)


def in_argument_order(schema: Schema, formulas: Sequence[ResolvedFormula]) -> tuple[ResolvedFormula, ...]:
    """By the first argument that each formula is for."""
    positions = {one.name: position for position, one in enumerate(schema.formula_arguments)}
    return tuple(sorted(formulas, key=lambda formula: min(positions[name] for name in formula.inputs)))


def in_field_order(formulas: Iterable[ResolvedFormula]) -> tuple[Saved, ...]:
    """What formulas save, each value once, as node structs list their fields: arguments' before results', by name."""
    saved: dict[str, Saved] = {}
    for formula in formulas:
        for one in formula.saved:
            saved.setdefault(one.name, one)
    return tuple(sorted(saved.values(), key=lambda one: (one.is_output, one.name)))
