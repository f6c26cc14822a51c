"""Which reasons steps of a plain program may have to take the slow path: nothing else tells the two apart.

A plain program has no hooks, builds no graph and accumulates into leaves. What remains is what a node is, and what its
tensors are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backbind._namespace import load_operators

NO_FORMULAS = "the node's formulas are not compiled here"
OPAQUE = "a function of Python or C++, or another node that is not one of torch's operators"
TENSORS = "tensors other than dense real ones of the CPU, saved tensors with hooks or changed ones"
LEAF = "a gradient that its leaf cannot have as it is"

_ACCUMULATOR = "AccumulateGrad"


def unexpected_reasons(reasons: Mapping[str, Mapping[str, int]], *, is_dense_and_real: bool) -> Iterator[str]:
    """The reasons that a plain program must not give, with the nodes that gave them."""
    for reason, nodes in reasons.items():
        wrong = sorted(node for node in nodes if not _may(reason, node, is_dense_and_real))
        if wrong:
            yield f"slow path because of {reason}: {', '.join(wrong)}"


def _may(reason: str, node: str, is_dense_and_real: bool) -> bool:
    operator = load_operators().get(node)
    if reason == LEAF:
        return node == _ACCUMULATOR
    if reason == TENSORS:
        return not is_dense_and_real
    if operator is None:
        return reason == OPAQUE
    if reason == NO_FORMULAS:
        return operator.mode == "delegate"
    return False
