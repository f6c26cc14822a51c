"""What a replay runs for a node instead of calling it."""

from __future__ import annotations

from collections.abc import Sequence

from backbind import _C
from torch.autograd.graph import Node

from tests.oracle.live_node import Gradients
from tests.oracle.outcome import Outcome, outcome_of


class Steps:
    """The step of one live node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def run(self, grads: Gradients, wanted: Sequence[bool]) -> Outcome | None:
        """What the step gives, or None where a replay calls the node. ``wanted`` has a flag for each edge."""
        none_there = False

        def run() -> object:
            nonlocal none_there
            results = _C.run_step(self._node, list(grads), list(wanted))
            none_there = results is None
            return results

        outcome = outcome_of(run)
        return None if none_there else outcome
