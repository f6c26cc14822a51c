"""Makes the model of each node out of what resolving gave: how it is emitted, and how its values are passed."""

from __future__ import annotations

from .. import names
from ..resolve.layout import layout_of
from ..resolve.records import Derivatives, ResolvedFormula, ResolvedNode, Saved
from .library import Library
from .mode import choose_mode
from .node import Argument, Formula, Mode, ModeChoice, Model, NodeSpec, SavedValue, Skipped
from .saved_types import saved_type_of
from .step_keys import step_keys


def build_model(library: Library, derivatives: Derivatives, forced_mode: Mode | None = None) -> Model:
    """Build the model of every node of a library.

    ``forced_mode`` asks for delegates everywhere, or for inline code wherever it is possible (which is also the
    default).
    """
    nodes = tuple(_build_node(node, library, forced_mode) for node in derivatives.nodes)
    skipped = tuple(
        Skipped(one.entry.schema.text, one.reason, one.entry.span.line) for one in derivatives.skipped
    )
    return Model(library, nodes, skipped)


def _build_node(node: ResolvedNode, library: Library, forced_mode: Mode | None) -> NodeSpec:
    formulas = tuple(_build_formula(formula) for formula in node.formulas)
    if forced_mode is Mode.DELEGATE:
        choice = ModeChoice(Mode.DELEGATE, "asked for on the command line")
    else:
        choice = choose_mode(formulas, node.inputs, node.origin == "foreach", library.link_facts)
    keys, called = step_keys(formulas, library)
    return NodeSpec(
        name=node.name,
        operator=node.schema.full_name,
        forward_schema=node.schema.text,
        dispatch_key=node.dispatch_key,
        origin=node.origin,
        entry_schema=node.entry.schema.text,
        line=node.entry.span.line,
        inputs=node.inputs,
        outputs=node.outputs,
        named_gradients=node.named_gradients,
        formulas=formulas,
        saved=_build_saved(node),
        choice=choice,
        struct=f"{library.structs}::{node.name}",
        step_keys=keys,
        step_operators=called,
    )


def _build_formula(formula: ResolvedFormula) -> Formula:
    line, lines = layout_of(formula)
    return Formula(formula.inputs, formula.written.text, formula.text, line, lines, formula.parsed)


def _build_saved(node: ResolvedNode) -> tuple[SavedValue, ...]:
    values = [_saved_value(one) for one in node.saved]
    values += [
        _saved_value(
            Saved(names.list_size(one.name), "size_t", f"{one.name}.size()", False),
            field=names.list_size_field(one.name),
        )
        for one in node.inputs
        if one.is_list
    ]
    return tuple(values)


def _saved_value(saved: Saved, field: str | None = None) -> SavedValue:
    row = saved_type_of(saved.cpp_type)
    return SavedValue(
        name=saved.name,
        type=row,
        expression=saved.expression,
        from_output=saved.is_output,
        field=field if field is not None else names.field(saved.name, row.is_tensor),
        arguments=tuple(
            Argument(names.argument(saved.name, component.suffix), component) for component in row.components
        ),
    )
