"""The table of checks against the C++ that makes them, and every precondition of the model against the table."""

from __future__ import annotations

import re

import pytest

from codegen.model.node import Model
from codegen.model.precondition import GradientCount, Gradients, Length, NamedValue, Operand
from codegen.preconditions.checks import CHECKS, Check, Kind
from tests.conftest import REPOSITORY

HEADER = (REPOSITORY / "csrc" / "nodes" / "preconditions.h").read_text()
MEMBERS = re.findall(r"^  void (\w+)\(([^;]*)\) const;$", HEADER, re.MULTILINE)
"""Name and parameters of each, overloads one by one."""

PARAMETERS = {Kind.NAMED_VALUE: (2,), Kind.LENGTH: (2,), Kind.TENSOR_OR_SIZES: (1, 2)}
"""How many parameters of C++ stand for one of ours, where that is not one: the first is the name."""


def counts(check: Check) -> set[int]:
    """How many parameters a member may have that makes the check."""
    found = {int(check.takes_gradients)}
    for kind in check.parameters:
        found = {one + more for one in found for more in PARAMETERS.get(kind, (1,))}
    return found


def test_the_checks_are_the_members() -> None:
    assert {name for name, _ in MEMBERS} == set(CHECKS)


@pytest.mark.parametrize(("name", "parameters"), MEMBERS)
def test_the_parameters_of_a_check_are_those_of_the_member(name: str, parameters: str) -> None:
    check = CHECKS[name]
    # std::vector<...> of the parameters holds no commas.
    types = [" ".join(one.split()) for one in parameters.split(",")]
    assert len(types) in counts(check)
    assert types[0].startswith("const variable_list&") == check.takes_gradients
    tensors = [one for one in types if one.startswith("NamedTensor ")]
    lists = [one for one in types if one.startswith("std::initializer_list<NamedTensor>")]
    assert len(lists) == check.parameters.count(Kind.TENSORS)
    least = check.parameters.count(Kind.TENSOR)
    assert least <= len(tensors) <= least + check.parameters.count(Kind.TENSOR_OR_SIZES)


def width(operand: Operand) -> int:
    return 2 if isinstance(operand, NamedValue | Length | GradientCount) else 1


def test_the_preconditions_of_all_nodes_are_calls_of_these_checks(model: Model) -> None:
    for node in model.nodes:
        saved = {one.name for one in node.saved}
        for one in node.preconditions:
            check = CHECKS[one.check]
            assert sum(map(width, one.operands)) in counts(check), (node.name, one)
            assert isinstance(one.operands[0], Gradients) == check.takes_gradients, (node.name, one)
            assert saved.issuperset(one.reads), (node.name, one)
