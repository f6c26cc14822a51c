"""Nodes of operators over lists of tensors, derived from the entry of the operator that they repeat.

``_foreach_add.List(Tensor[] self, Tensor[] other, ...)`` does to each pair of elements what ``add.Tensor(Tensor self,
Tensor other, ...)`` does, so its formulas are those of ``add.Tensor`` with ``self[i]`` for ``self`` and ``grads[i]``
for ``grad``. Lists are saved whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .. import names
from ..parse.expression import Call, Expression, Name, walk
from ..parse.report import Report
from ..parse.schema import Schema
from ..parse.span import Span
from ..parse.yaml_source import DEFAULT_KEY
from .attributes import find_reading
from .editing import Editing
from .entry_node import in_argument_order, in_field_order, node_inputs
from .formula import saved_whole, values_of
from .outputs import SINGLE_GRADIENT, node_outputs
from .records import ResolvedFormula, ResolvedNode, Saved

_PREFIX = "_foreach_"
_ELEMENT = "[i]"


def nodes_over_lists(
    nodes: Iterable[ResolvedNode], schemas: Iterable[Schema], report: Report
) -> Iterator[ResolvedNode]:
    """A node for each of ``schemas`` that repeats the operator of one of ``nodes``: the first, if there are several."""
    by_name: dict[str, list[ResolvedNode]] = {}
    for node in nodes:
        if node.dispatch_key == DEFAULT_KEY:
            by_name.setdefault(_PREFIX + node.schema.name, []).append(node)
    for schema in schemas:
        if schema.is_inplace or schema.is_out:
            continue
        single = next((node for node in by_name.get(schema.name, ()) if _repeats(schema, node.schema)), None)
        if single is not None:
            yield _foreach_node(single, schema, report)


def _repeats(foreach: Schema, schema: Schema) -> bool:
    """Whether an operator over lists does to each element what the operator of ``schema`` does to one tensor.

    Arguments that follow those of the lists' operator have their defaults.
    """
    single, over_lists = schema.arguments, foreach.arguments
    return (
        len(over_lists) <= len(single)
        and all(argument.has_default for argument in single[len(over_lists) :])
        and all(
            one.type in (other.type, other.type.removesuffix("[]"))
            for one, other in zip(single, over_lists, strict=False)
        )
    )


def _foreach_node(node: ResolvedNode, foreach: Schema, report: Report) -> ResolvedNode:
    """The node of ``foreach``, which repeats the operator of ``node``."""
    lists = _Lists(node.schema, foreach, report)
    formulas = tuple(lists.formula(one) for one in node.formulas)
    return ResolvedNode(
        name=names.foreach_node(node.name, foreach.overload),
        schema=foreach,
        dispatch_key=node.dispatch_key,
        entry=node.entry,
        origin="foreach",
        inputs=node_inputs(foreach, formulas),
        outputs=node_outputs(foreach, None, ()),
        named_gradients=(),
        formulas=in_argument_order(foreach, formulas),
        saved=in_field_order(formulas),
    )


class _Lists:
    """Rewrites the formulas of ``single`` for element ``i`` of the lists of ``foreach``."""

    def __init__(self, single: Schema, foreach: Schema, report: Report) -> None:
        values = values_of(foreach)
        self.foreach = foreach
        self.report = report
        self.values = {
            one.name: values[other.name]
            for one, other in zip(single.arguments, foreach.arguments, strict=False)
        }
        self.values |= {
            one: values[other] for one, other in zip(single.output_names, foreach.output_names, strict=False)
        }
        self.unknown = values_of(single).keys() - self.values.keys()
        """What lists have nothing for: an argument that has its default in them, a second result."""

    def formula(self, formula: ResolvedFormula) -> ResolvedFormula:
        written = formula.written
        indexed_twice = _indexed_twice(formula)
        editing = Editing(written.root)
        saved: list[Saved] = []
        for node in _variables(written.root):
            name = node.path[0]
            value = self.values.get(name)
            if value is not None:
                kept = saved_whole(value, written.span(node), self.report)
                saved += [kept] if kept is not None else []
                indices = (2 if id(node) in indexed_twice else 1) if "[" in value.type else 0
                text = value.name + _ELEMENT * indices
            elif name == SINGLE_GRADIENT:
                text = f"grads{_ELEMENT}"
            elif name in self.unknown:
                self.refuse(written.span(node), name)
                continue
            else:
                continue
            if text != name:
                editing.put(node, text)
        inputs = tuple(self.values[name].name for name in formula.inputs)
        return ResolvedFormula(inputs, written, editing.edited_root(), tuple(editing.edits), tuple(saved))

    def refuse(self, place: Span, name: str) -> None:
        self.report.error(
            place,
            f"'{self.foreach.full_name}' has no '{name}', and its node is derived from this formula",
            f"leave '{name}' out, or give '{self.foreach.full_name}' an entry of its own",
        )


def _variables(root: Expression) -> Iterator[Name]:
    """The plain names that are used as values."""
    functions: set[int] = set()
    for node, _, bound in walk(root):
        if isinstance(node, Call):
            functions.add(id(node.function))
        elif isinstance(node, Name) and id(node) not in functions and node.plain not in {None, *bound}:
            yield node


def _indexed_twice(formula: ResolvedFormula) -> frozenset[int]:
    """The tensors whose attributes are read in a formula that reads them whole, too.

    torch's own nodes are generated by replacing text, which meets these twice: ``tensor2[i][i].scalar_type()``. They
    raise an error for element 1 of a list if it has one element, and a node here must do what torch's does.
    """
    whole = {one.name for one in formula.saved}
    readings = (find_reading(node) for node, _, _ in walk(formula.written.root))
    return frozenset(
        id(reading.tensor) for reading in readings if reading is not None and reading.tensor.plain in whole
    )
