"""The operators that a step is known to call, beside those that its formulas are seen to call."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.conftest import REPOSITORY
from tests.ops.called_operators import operator_name, outermost, recorded
from tests.ops.node_set import NODE_SET, NodeCase
from tests.ops.test_helpers_in_every_mode import HELPED, TRACED_SIZES

_LIST = re.compile(r"(\w+)_step_operators\{([^}]*)\};")

KNOWN: dict[str, set[str]] = {
    name: set(re.findall(r'"(\w+)"', listed))
    for shard in sorted((REPOSITORY / "generated" / "cpp").glob("nodes_*.cpp"))
    for name, listed in _LIST.findall(shard.read_text())
}
"""By the name of the node."""


def _assert_known(node: str, call: Callable[[], object]) -> None:
    called = {operator_name(event) for event in outermost(recorded(call))}
    assert called <= KNOWN[node], f"{node} calls {called - KNOWN[node]} beside what is known"


def test_there_are_lists() -> None:
    assert len(KNOWN) > 300
    assert KNOWN["TanhBackward0"] == {"tanh_backward"}


@pytest.mark.parametrize("case", [case for case in NODE_SET if case.node in KNOWN], ids=str)
def test_operators_of_the_node_set(case: NodeCase) -> None:
    made = case.make()
    _assert_known(case.node, made.call)


@pytest.mark.parametrize("name", [name for name in HELPED if HELPED[name].operator.name in KNOWN])
def test_operators_of_helpers(name: str) -> None:
    helped = HELPED[name]
    gradient, *saved = helped.tensors(TRACED_SIZES, lambda tensor: tensor)
    _assert_known(helped.operator.name, lambda: helped.call(helped.operator, gradient, TRACED_SIZES, saved))
