"""Preconditions that follow from the model, of any node: from its schema, its formulas and the types of what it saves.

As many gradients as outputs, lists as long as the lists that they belong to, dimensions that exist, tensors that a
wanted gradient is computed from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass

from ..model.node import NodeSpec
from ..model.precondition import (
    Gradients,
    Length,
    Literal,
    NamedTensor,
    NamedValue,
    Operand,
    Precondition,
    Rank,
    Value,
)
from ..parse.expression import Call, Name, walk
from ..parse.schema import parse_schema

_POSITIVE = ("groups", "group", "num_groups", "upscale_factor", "downscale_factor")
"""Arguments that formulas divide by."""

_PER_ELEMENT = ("tensor_list", "scalar_list")
"""Rows with one value for each element of a foreach node's lists."""

_PER_LIST_INPUT = ("scalar_type_list", "integer_lists", "sym_int_lists")
"""Rows with one value for each element of the list input that they are named after."""

_DIMENSIONS = ("integer", "optional_integer", "integer_list", "optional_integer_list", "sym_int_list")
"""Rows that may hold dimensions."""


@dataclass(frozen=True)
class Exemptions:
    """The saved values of a node for which a rule does not hold, by name; a table says so (``torch.yaml``)."""

    optional: Set[str] = frozenset()
    exact_length: Set[str] = frozenset()
    may_be_empty: Set[str] = frozenset()


def derived_preconditions(node: NodeSpec, exemptions: Exemptions) -> Iterator[Precondition]:
    """The checks of one node, in the order in which they are made."""
    yield from _gradient_count(node)
    yield from _list_lengths(node)
    yield from _sizes_with_strides(node)
    yield from _fixed_lengths(node, exemptions)
    yield from _numbers(node)
    yield from _defined(node, exemptions)


def _gradient_count(node: NodeSpec) -> Iterator[Precondition]:
    if node.is_per_element:
        yield Precondition("gradient_count", (Gradients(), _first_size(node)))
    elif node.gradient_count is not None:
        yield Precondition("gradient_count", (Gradients(), Literal(str(node.gradient_count))))


def _first_size(node: NodeSpec) -> Value:
    return next(Value(one.size_name) for one in node.inputs if one.size_name is not None)


def _list_lengths(node: NodeSpec) -> Iterator[Precondition]:
    """Lists that have one value for each element of a list of tensors."""
    lists = {one.name: one.size_name for one in node.inputs if one.size_name is not None}
    if node.is_per_element:
        size = _first_size(node)
        for other in list(lists.values())[1:]:
            yield Precondition("list_length", (NamedValue(other), size))
        for saved in node.saved:
            if saved.type.key in _PER_ELEMENT:
                yield Precondition("list_length", (Length(saved.name), size))
    for saved in node.saved:
        owner = next((size for name, size in lists.items() if saved.name.startswith(f"{name}_args_")), None)
        if owner is not None and saved.type.key in _PER_LIST_INPUT:
            yield Precondition("list_length", (Length(saved.name), Value(owner)))


def _sizes_with_strides(node: NodeSpec) -> Iterator[Precondition]:
    """Sizes and strides of one tensor, saved side by side."""
    lists = {saved.name for saved in node.saved if saved.type.key == "sym_int_list"}
    layouts = {saved.name for saved in node.saved if saved.type.key == "layout"}
    for sizes in (saved.name for saved in node.saved if saved.name in lists):
        strides = re.sub(r"size(s?)$", r"stride\1", sizes)
        if strides == sizes or strides not in lists:
            continue
        layout = sizes.replace("sym_sizes", "layout")
        if layout in layouts:  # a sparse tensor has sizes only
            yield Precondition("strides", (Length(sizes), Length(strides), Value(layout)))
        else:
            yield Precondition("same_length", (Length(sizes), Length(strides)))


def _fixed_lengths(node: NodeSpec, exemptions: Exemptions) -> Iterator[Precondition]:
    """Lists of numbers whose length the forward's schema fixes, as in ``int[2] stride``."""
    for saved in node.saved:
        if saved.type.key not in ("integer_list", "sym_int_list") or saved.expression != saved.name:
            continue
        # int[1] only says that a single number may stand for a list.
        found = re.search(rf"[iI]nt\[([2-9])\] {re.escape(saved.name)}(=\[\])?(?!\w)", node.forward_schema)
        if found is not None:
            may_be_single = saved.name not in exemptions.exact_length
            may_be_empty = found[2] is not None or saved.name in exemptions.may_be_empty
            operands = Length(saved.name), Literal(found[1]), _flag(may_be_single), _flag(may_be_empty)
            yield Precondition("fixed_length", operands)


def _flag(value: bool) -> Literal:
    return Literal("true" if value else "false")


def _numbers(node: NodeSpec) -> Iterator[Precondition]:
    rank = _rank(node)
    for saved in node.saved:
        if saved.name in _POSITIVE and saved.type.key in ("integer", "sym_int"):
            yield Precondition("positive", (NamedValue(saved.name),))
        if rank is not None and saved.name == "dim" and saved.type.key in _DIMENSIONS:
            yield Precondition("dim", (NamedValue("dim"), rank))


def _rank(node: NodeSpec) -> Operand | None:
    """The number of dimensions of the forward's first input, if the node keeps it."""
    for saved in node.saved:
        if saved.name == "self_dim" and saved.type.key == "integer":
            return Value(saved.name)
        if (saved.name, saved.type.key) in (("self", "tensor"), ("self_sym_sizes", "sym_int_list")):
            return Rank(saved.name)
    return None


def _defined(node: NodeSpec, exemptions: Exemptions) -> Iterator[Precondition]:
    """Tensors that the formula of a wanted gradient reads, where the forward always has them."""
    types = {one.name: one.type for one in parse_schema(node.forward_schema).arguments}
    exempt = exemptions.optional | _kept_on_condition(node)
    for saved in node.saved:
        if saved.type.key != "tensor" or saved.name in exempt or not node.readers(saved):
            continue
        if saved.from_output or types.get(saved.expression) == "Tensor":
            yield Precondition("defined", (Gradients(), NamedTensor(saved.name)))


def _kept_on_condition(node: NodeSpec) -> frozenset[str]:
    """Tensors inside ``wrap_opt_if``: the forward keeps them only for some of the wanted gradients."""
    return frozenset(
        expression.arguments[0].path[-1]
        for formula in node.formulas
        for expression, _, _ in walk(formula.parsed.root)
        if isinstance(expression, Call)
        and isinstance(expression.function, Name)
        and expression.function.path[-1] == "wrap_opt_if"
        and isinstance(expression.arguments[0], Name)
    )
