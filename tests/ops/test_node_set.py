"""The representative set is representative, and its operators compute what the live nodes compute."""

from __future__ import annotations

import backbind
import pytest

from codegen.model.node import Model
from codegen.model.saved_types import SAVED_TYPES
from codegen.pipeline import Settings, Timings, load_model
from codegen.torch_install.locate import TorchInstall
from tests.ops.node_set import NODE_SET, NodeCase, all_same_bits


@pytest.fixture(scope="module")
def model(installed_torch: TorchInstall) -> Model:
    return load_model(installed_torch, Settings(), Timings())


def test_the_set_covers_every_row_of_the_type_table(model: Model) -> None:
    names = {case.node for case in NODE_SET}
    covered = {saved.type.key for node in model.nodes if node.name in names for saved in node.saved}
    assert {row.key for row in SAVED_TYPES} - covered == set()


def test_the_set_covers_both_modes_and_every_origin() -> None:
    operators = [backbind.ops.get(case.node) for case in NODE_SET]
    assert len(operators) >= 40
    assert {operator.mode for operator in operators} == {"inline", "delegate"}
    assert {operator.record.origin for operator in operators} == {"entry", "view_copy", "foreach"}


def test_the_set_covers_several_outputs_and_lists_of_inputs() -> None:
    operators = [backbind.ops.get(case.node) for case in NODE_SET]
    assert sum(len(operator.outputs) > 1 for operator in operators) >= 3
    assert sum("Tensor[] tensors" in operator.record.forward_schema for operator in operators) >= 3


def test_no_node_is_there_twice() -> None:
    assert len({case.node for case in NODE_SET}) == len(NODE_SET)


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_operator_equals_the_live_node(case: NodeCase) -> None:
    made = case.make()
    assert made.operator.name == case.node
    expected = made.expected()
    assert all_same_bits(made.call(), expected)
    assert all_same_bits(made.operator.delegate(made.grads, *made.packed), expected)
    assert all_same_bits(made.operator.overload(made.grads, *made.packed), expected)
