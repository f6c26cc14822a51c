"""A reason that a plain program must not give for its slow paths is seen."""

from __future__ import annotations

import pytest

from tests.replay.programs.slow_paths import LEAF, NO_FORMULAS, OPAQUE, TENSORS, unexpected_reasons

HOOKS = "hooks on the node or its tensor"


@pytest.mark.parametrize(
    ("reason", "node", "expected"),
    [
        (NO_FORMULAS, "CumsumBackward0", True),
        (NO_FORMULAS, "MulBackward0", False),
        (NO_FORMULAS, "StackBackward0", False),
        (LEAF, "AccumulateGrad", True),
        (LEAF, "MulBackward0", False),
        (OPAQUE, "CopySlices", True),
        (OPAQUE, "MulBackward0", False),
        (TENSORS, "MulBackward0", False),
        (HOOKS, "MulBackward0", False),
        ("another reason", "CopySlices", False),
    ],
)
def test_which_reasons_are_expected(reason: str, node: str, expected: bool) -> None:
    told = list(unexpected_reasons({reason: {node: 1}}, is_dense_and_real=True))
    assert told == ([] if expected else [f"slow path because of {reason}: {node}"])


def test_other_tensors_are_a_reason() -> None:
    assert list(unexpected_reasons({TENSORS: {"MulBackward0": 1}}, is_dense_and_real=False)) == []


def test_all_nodes_of_a_reason_are_told() -> None:
    told = list(
        unexpected_reasons({NO_FORMULAS: {"B": 1, "A": 2, "Atan2Backward0": 1}}, is_dense_and_real=True)
    )
    assert told == [f"slow path because of {NO_FORMULAS}: A, B"]
