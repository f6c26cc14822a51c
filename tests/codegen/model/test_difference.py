"""Two models compared: each kind of change is found, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from codegen.model.difference import Change, Difference, NodeDifference, compare_models, describe
from codegen.model.node import Mode, ModeChoice, Model, NodeSpec
from codegen.resolve.records import Input

NAMES = ("MulBackward0", "SinBackward0", "SplitBackward0")


@pytest.fixture(scope="session")
def small(model: Model) -> Model:
    return replace(model, nodes=tuple(node for node in model.nodes if node.name in NAMES))


def with_node(model: Model, name: str, change: Callable[[NodeSpec], NodeSpec]) -> Model:
    nodes = tuple(change(node) if node.name == name else node for node in model.nodes)
    return replace(model, nodes=nodes, library=replace(model.library, version="2.14.0"))


def other_formula(node: NodeSpec) -> NodeSpec:
    return replace(node, formulas=(replace(node.formulas[0], written="grad *\n  1"), *node.formulas[1:]))


def other_saved(node: NodeSpec) -> NodeSpec:
    return replace(node, saved=(replace(node.saved[0], expression="other.detach()"), *node.saved[1:]))


def fewer_saved(node: NodeSpec) -> NodeSpec:
    return replace(node, saved=node.saved[1:])


def other_forward(node: NodeSpec) -> NodeSpec:
    return replace(node, forward_schema="mul.Tensor(Tensor self, Tensor other, *, int x) -> Tensor")


def other_key(node: NodeSpec) -> NodeSpec:
    return replace(node, dispatch_key="AutogradNestedTensor")


def other_inputs(node: NodeSpec) -> NodeSpec:
    return replace(node, inputs=(Input("self", True),))


FORWARD = "mul.Tensor(Tensor self, Tensor other) -> Tensor"


@pytest.mark.parametrize(
    "change, changes",
    [
        (
            other_formula,
            [Change("formula", "self", "mul_tensor_backward(grad, other, self.scalar_type())", "grad * 1")],
        ),
        (
            other_saved,
            [
                Change(
                    "saved value",
                    "other",
                    "SavedVariable other_ = other",
                    "SavedVariable other_ = other.detach()",
                )
            ],
        ),
        (fewer_saved, [Change("saved value", "other", "SavedVariable other_ = other", None)]),
        (
            other_forward,
            [Change("forward", "", FORWARD, "mul.Tensor(Tensor self, Tensor other, *, int x) -> Tensor")],
        ),
        (other_key, [Change("forward", "", FORWARD, f"{FORWARD}  [AutogradNestedTensor]")]),
        (other_inputs, [Change("inputs", "", "self, other", "self[]")]),
    ],
)
def test_one_change(small: Model, change: Callable[[NodeSpec], NodeSpec], changes: list[Change]) -> None:
    found = compare_models(small, with_node(small, "MulBackward0", change))
    assert found == Difference("2.13.0", "2.14.0", (), (), (NodeDifference("MulBackward0", tuple(changes)),))


def test_equal_models_do_not_differ(model: Model) -> None:
    assert compare_models(model, model) == Difference("2.13.0", "2.13.0", (), (), ())


def test_places_and_modes_do_not_count(small: Model) -> None:
    def moved(node: NodeSpec) -> NodeSpec:
        formulas = tuple(replace(formula, line=formula.line + 7) for formula in node.formulas)
        return replace(node, line=1, formulas=formulas, choice=ModeChoice(Mode.DELEGATE, "another reason"))

    assert compare_models(small, with_node(small, "SinBackward0", moved)).changed == ()


def test_the_description_tells_all_of_it(small: Model) -> None:
    old = replace(small, nodes=tuple(node for node in small.nodes if node.name != "SplitBackward0"))
    new = with_node(small, "MulBackward0", lambda node: fewer_saved(other_formula(node)))
    new = replace(new, nodes=tuple(node for node in new.nodes if node.name != "SinBackward0"))
    difference = compare_models(old, new)
    split = next(node for node in small.nodes if node.name == "SplitBackward0")
    assert describe(difference) == (
        "torch 2.13.0 -> 2.14.0: 1 node added, 1 removed, 1 with changed formulas, "
        "1 with changed saved values\n"
        "\n"
        "added SplitBackward0\n"
        f"  forward: {split.forward_schema}\n"
        f"  self: {split.formulas[0].written}\n"
        "\n"
        "removed SinBackward0\n"
        "  forward: sin(Tensor self) -> Tensor\n"
        "  self: grad * self.cos().conj()\n"
        "\n"
        "changed MulBackward0\n"
        "  formula self\n"
        "    - mul_tensor_backward(grad, other, self.scalar_type())\n"
        "    + grad * 1\n"
        "  saved value other\n"
        "    - SavedVariable other_ = other\n"
    )
    assert difference.to_json() == {
        "old": "2.13.0",
        "new": "2.14.0",
        "added": [{"node": "SplitBackward0", "operator": "split.Tensor", "forward": split.forward_schema}],
        "removed": [{"node": "SinBackward0", "operator": "sin", "forward": "sin(Tensor self) -> Tensor"}],
        "changed": [
            {
                "node": "MulBackward0",
                "changes": [
                    {
                        "kind": "formula",
                        "subject": "self",
                        "old": "mul_tensor_backward(grad, other, self.scalar_type())",
                        "new": "grad * 1",
                    },
                    {
                        "kind": "saved value",
                        "subject": "other",
                        "old": "SavedVariable other_ = other",
                        "new": None,
                    },
                ],
            }
        ],
    }
