"""Which nodes an entry of a table is for, and what it changes about the checks that follow by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codegen.emit.preconditions import check_statements
from codegen.model.node import Model, NodeSpec
from codegen.parse.report import Report
from codegen.parse.span import SourceFile
from codegen.preconditions import add_preconditions
from codegen.preconditions.rules import Exemptions, derived_preconditions


def with_table(model: Model, text: str) -> dict[str, NodeSpec]:
    """The nodes by name, with the preconditions that this table gives them in place of torch's."""
    report = Report()
    bare = replace(model, nodes=tuple(replace(node, preconditions=()) for node in model.nodes))
    nodes = add_preconditions(bare, SourceFile("table.yaml", text), report).nodes
    assert report.render() == ""
    return {node.name: node for node in nodes}


def stated(node: NodeSpec) -> list[str]:
    """The checks behind those that follow by rule."""
    return list(check_statements(node)[len(list(derived_preconditions(node, Exemptions()))) :])


def test_without_a_table_there_are_the_rules(model: Model) -> None:
    for node in with_table(model, "").values():
        assert node.preconditions == tuple(derived_preconditions(node, Exemptions()))


@pytest.mark.parametrize(
    ("operator", "nodes"),
    [
        # All overloads, or one of them.
        ("mul", {"MulBackward0", "MulBackward1"}),
        ("mul.Tensor", {"MulBackward0"}),
        # What torch derives from the entry for the copying form, by the names of the view.
        ("expand", {"ExpandBackward0", "ExpandBackward0_copy"}),
        ("split.Tensor", {"SplitBackward0", "SplitBackward0_copy"}),
        # Not what has a dispatch key of its own, nor what is derived for lists.
        ("split_with_sizes", {"SplitWithSizesBackward0", "SplitWithSizesBackward0_copy"}),
        ("tanh", {"TanhBackward0"}),
    ],
)
def test_an_entry_is_for_the_nodes_of_an_operator(operator: str, nodes: set[str], model: Model) -> None:
    found = with_table(model, f"- operators: [{operator}]\n  checks:\n    - contiguous(grads[0])\n")
    check = 'check.contiguous({"grads", grads[0]});'
    assert {name for name, node in found.items() if stated(node)} == nodes
    assert all(stated(found[name]) == [check] for name in nodes)


@pytest.mark.parametrize("order", [1, -1])
def test_an_entry_for_an_overload_takes_the_place_of_that_for_all(order: int, model: Model) -> None:
    entries = [
        "- operators: [mul]\n  checks:\n    - contiguous(grads[0])\n",
        "- operators: [mul.Tensor]\n  checks: [contiguous(self)]\n",
    ]
    found = with_table(model, "".join(entries[::order]))
    assert stated(found["MulBackward0"]) == ['if (needs_input_grad[1]) check.contiguous({"self", self});']
    assert stated(found["MulBackward1"]) == ['check.contiguous({"grads", grads[0]});']


def test_exceptions_change_what_the_rules_give(model: Model) -> None:
    table = """
- operators: [avg_pool2d]
  exact_length: [kernel_size]
  may_be_empty: [padding]
  optional: [self]
"""
    node = with_table(model, table)["AvgPool2DBackward0"]
    assert check_statements(node) == (
        "check.gradient_count(grads, 1);",
        'if (needs_input_grad[0]) check.fixed_length("kernel_size", kernel_size.size(), 2, false, false);',
        'if (needs_input_grad[0]) check.fixed_length("padding", padding.size(), 2, true, true);',
        'if (needs_input_grad[0]) check.fixed_length("stride", stride.size(), 2, true, true);',
    )


def test_a_check_is_made_where_everything_in_it_is_read(model: Model) -> None:
    """``mul`` reads ``other`` for the gradient of self only, and self for that of other."""
    table = (
        "- operators: [mul.Tensor]\n  checks: ['element_count(2 * 3, {self, other})', contiguous(other)]\n"
    )
    assert stated(with_table(model, table)["MulBackward0"]) == [
        "if (needs_input_grad[1] && needs_input_grad[0]) "
        'check.element_count(2 * 3, {{"self", self}, {"other", other}});',
        'if (needs_input_grad[0]) check.contiguous({"other", other});',
    ]
