"""Compares every node of a live graph with its functional operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import torch
from backbind import _C
from torch.autograd.graph import Node

from tests.oracle.gradients import Results, arriving_gradients, has_known_shapes, has_nested_results
from tests.oracle.graph_walk import reachable_nodes, tensors_with_history
from tests.oracle.node_check import NodeCheck
from tests.oracle.tally import Column, Disagreement, Tally

ORDER = 2
"""How many backwards deep: the graph of the program, then the graph that computing its gradients leaves."""


WHOLE = 16
"""Kinds of calls of one node that all comparisons are made of. Of the nodes that nearly every program has (views, sums,
products) there are thousands of kinds; each further one is compared in two of the six ways."""


LARGE = 2**14
"""Saved tensors of so many elements take kernels some time, and are no kind of their own: such a call is compared in
two ways, too."""


class Checker:
    """Checks graphs and remembers which kinds of calls were found right, so that none is compared twice."""

    def __init__(self, whole: int = WHOLE) -> None:
        self.tally = Tally()
        self._whole = whole
        self._kinds: Counter[str] = Counter()
        """How many kinds of each node were compared."""
        self._right: dict[Hashable, frozenset[Column]] = {}
        """What was compared of the kinds that were right."""
        self._traced: set[str] = set()
        """Nodes of which a graph was made: that takes too long to be done with each kind."""

    def check(self, results: object) -> list[Disagreement]:
        """Compare every node behind ``results``, and behind the gradients of those, with its operator."""
        found: list[Disagreement] = []
        met: set[Node] = set()
        outer = tensors_with_history(results)
        for _ in range(ORDER):
            known: Results = {(one.grad_fn, one.output_nr): one for one in outer if one.grad_fn is not None}
            nodes = [node for node in reachable_nodes(node for node, _ in known) if node not in met]
            met.update(nodes)
            if any(has_nested_results(node) for node in nodes):
                known = arriving_gradients(known) | dict(known)
            inner: list[torch.Tensor] = []
            for node in nodes:
                inner += self._check_node(node, known, found)
            outer = inner
        return found

    def _check_node(self, node: Node, known: Results, found: list[Disagreement]) -> list[torch.Tensor]:
        """Check one node unless its kind was found right. Returns its gradients with the graph behind them."""
        if _C.binding_name(node) is None:
            return []
        self.tally.nodes += 1
        if not has_known_shapes(node, known):
            self.tally.out_of_reach[node.name()] += 1
            return []
        check = NodeCheck(node, known, self.tally)
        if check.kind in self._right:
            self.tally.add(check.name, self._right[check.kind])
            return []
        if not check.gradients_fit():
            check = NodeCheck(node, arriving_gradients(known) | dict(known), self.tally)
            if not check.gradients_fit():
                self.tally.out_of_reach[node.name()] += 1
                return []
        gradients = check.run(
            traces=check.name not in self._traced,
            whole=self._kinds[check.name] < self._whole and check.elements < LARGE,
        )
        self._kinds[check.name] += 1
        self.tally.add(check.name, check.columns)
        if Column.TRACED in check.columns:
            self._traced.add(check.name)
        found += check.disagreements
        if not check.disagreements:
            self.tally.kinds += 1
            self._right[check.kind] = frozenset(check.columns)
        return gradients
