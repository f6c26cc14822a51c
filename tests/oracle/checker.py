"""Compares every node of a live graph with its functional operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import backbind
import torch
from backbind import _C
from torch.autograd.graph import Node
from torch.utils._pytree import tree_leaves

from tests.oracle.compare import difference
from tests.oracle.gradients import (
    Results,
    arriving_gradients,
    gradient_specs,
    has_known_shapes,
    has_nested_results,
    random_gradients,
    scattered_in_memory,
)
from tests.oracle.graph_walk import reachable_nodes, tensors_with_history
from tests.oracle.kinds import kind_of, kind_of_list
from tests.oracle.live_node import EngineRuns, Gradients, call_directly, input_spans
from tests.oracle.masks import subsets
from tests.oracle.outcome import Outcome, as_operators_say, outcome_of

ORDER = 2
"""How many backwards deep: the graph of the program, then the graph that computing its gradients leaves."""

_COMBINATIONS = 64
"""Masks times patterns of undefined gradients are all tried up to so many; else each with the full other one."""


_LIST = 8
"""No node has so many results unless they are a list."""


@dataclass(frozen=True)
class Disagreement:
    """One call whose outcome was not the truth."""

    node: str
    compared: str
    call: str
    what: str

    def __str__(self) -> str:
        return f"{self.node}: {self.compared}, {self.call}: {self.what}"


@dataclass
class Tally:
    """What was done so far."""

    samples: int = 0
    refused: int = 0
    """Samples whose forward raised: nothing to take a backward of."""
    nodes: int = 0
    kinds: int = 0
    calls: int = 0
    exercised: set[str] = field(default_factory=set)
    """Nodes that were met and compared, now or earlier with a call of the same kind."""
    out_of_reach: Counter[str] = field(default_factory=Counter)
    """Nodes of which no backward got as far as to show what a gradient for them looks like."""

    def counts(self) -> Counter[str]:
        return Counter(
            {
                "samples": self.samples,
                "refused": self.refused,
                "nodes": self.nodes,
                "kinds": self.kinds,
                "calls": self.calls,
                "out of reach": self.out_of_reach.total(),
            }
        )


class Checker:
    """Checks graphs and remembers which kinds of calls were found right, so that none is compared twice."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._right: set[Hashable] = set()

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
            self.tally.exercised.add(check.name)
            return []
        if not check.gradients_fit():
            check = NodeCheck(node, arriving_gradients(known) | dict(known), self.tally)
            if not check.gradients_fit():
                self.tally.out_of_reach[node.name()] += 1
                return []
        self.tally.exercised.add(check.name)
        gradients = check.run()
        found += check.disagreements
        if not check.disagreements:
            self.tally.kinds += 1
            self._right.add(check.kind)
        return gradients


class NodeCheck:
    """All comparisons for one live node."""

    def __init__(self, node: Node, known: Results, tally: Tally) -> None:
        self.disagreements: list[Disagreement] = []
        self._node = node
        self._operator = backbind.ops.for_node(node)
        self.name = self._operator.name
        self._tally = tally
        self._specs = gradient_specs(node, known)
        self._existing = [spec.exists for spec in self._specs]
        self._needed: tuple[bool, ...] = ()
        self._saved: tuple[object, ...] = ()
        self._unpackable = outcome_of(self._pack)
        self._is_symbolic = any(isinstance(value, torch.SymInt) for value in tree_leaves(self._saved))
        self.kind: Hashable = (
            self.name,
            self._needed,
            kind_of_list([spec.kind for spec in self._specs], of_tensors=len(self._specs) > _LIST),
            tuple(map(kind_of, self._saved)),
            self._unpackable.error,
        )

    def _pack(self) -> tuple[()]:
        packed = backbind.pack(self._node)
        needed, saved = packed[0], packed[1:]
        assert isinstance(needed, list)
        self._needed, self._saved = tuple(needed), saved
        return ()

    def gradients_fit(self) -> bool:
        """Whether the engine would pass gradients of the assumed layouts to this node."""
        if not self._unpackable.ok or not all(self._existing):
            return True
        engine = EngineRuns(self._node, input_spans(self._node, self._operator, self._saved))
        with torch.no_grad():
            return engine.takes(random_gradients(self._specs))

    def run(self) -> list[torch.Tensor]:
        """Make all comparisons. Returns the gradients with the graph that computing them left."""
        grads = random_gradients(self._specs)
        if not self._unpackable.ok:
            self._compare(
                "pack against the live node", "all", call_directly(self._node, grads), self._unpackable
            )
            return []
        gradients = self._differentiable_call(grads)
        with torch.no_grad():
            self._undefined_gradients(grads)
            self._scattered_gradients(grads)
            self._masks(grads)
        return gradients

    def _differentiable_call(self, grads: list[torch.Tensor]) -> list[torch.Tensor]:
        tracked = [
            grad.detach().requires_grad_() if grad.is_floating_point() or grad.is_complex() else grad
            for grad in grads
        ]
        # The first pattern of undefined gradients that the node can take, usually the one without any.
        for pattern in subsets(self._existing):
            given = [grad if flag else None for grad, flag in zip(tracked, pattern, strict=True)]
            live = call_directly(self._node, given)
            self._against_live(live, given, f"with a graph, gradients {_flags(pattern)}", history=True)
            if live.ok:
                return [one for one in live.gradients if one is not None and one.grad_fn is not None]
        return []

    def _undefined_gradients(self, grads: list[torch.Tensor]) -> None:
        for pattern in subsets(self._existing):
            given = [grad if flag else None for grad, flag in zip(grads, pattern, strict=True)]
            self._against_live(call_directly(self._node, given), given, f"gradients {_flags(pattern)}")

    def _scattered_gradients(self, grads: list[torch.Tensor]) -> None:
        scattered = [
            scattered_in_memory(grad) if spec.exists else None
            for grad, spec in zip(grads, self._specs, strict=True)
        ]
        self._against_live(call_directly(self._node, scattered), scattered, "gradients scattered in memory")

    def _masks(self, grads: list[torch.Tensor]) -> None:
        spans = input_spans(self._node, self._operator, self._saved)
        engine = EngineRuns(self._node, spans)
        for mask, given in self._masks_and_patterns(grads):
            described = (
                f"needs_input_grad {_flags(mask)}, gradients {_flags([grad is not None for grad in given])}"
            )
            actual = self._call(given, mask)
            if any(grad is not None for grad in given) and engine.can_want(mask):
                live = engine.run(given, mask)
                if live is not None:
                    self._compare("operator against the engine", described, live, engine.fitted(actual))
            self._against_delegate(given, mask, described, actual)

    def _masks_and_patterns(self, grads: list[torch.Tensor]) -> Iterator[tuple[tuple[bool, ...], Gradients]]:
        masks = list(subsets(self._needed))
        patterns = list(subsets(self._existing))
        everything = len(masks) * len(patterns) <= _COMBINATIONS
        for mask in masks:
            for pattern in patterns:
                if everything or mask == masks[0] or pattern == patterns[0]:
                    yield mask, [grad if flag else None for grad, flag in zip(grads, pattern, strict=True)]

    def _against_live(
        self, live: Outcome, given: Gradients, described: str, *, history: bool = False
    ) -> None:
        actual = self._call(given, self._needed)
        self._compare("operator against the live node", described, live, actual, history=history)
        if self._operator.mode == "inline":
            self._against_delegate(given, self._needed, described, actual, history=history)

    def _against_delegate(
        self,
        given: Gradients,
        mask: Sequence[bool],
        described: str,
        actual: Outcome,
        *,
        history: bool = False,
    ) -> None:
        if self._is_symbolic:
            return  # Symbolic sizes go through the dispatcher, which has no way to ask for the delegate.
        delegate = outcome_of(lambda: self._operator.delegate(given, mask, *self._saved))
        self._compare("operator against delegate", described, delegate, actual, history=history)

    def _call(self, grads: Gradients, mask: Sequence[bool]) -> Outcome:
        watched = [one for one in (*grads, *_tensors(self._saved)) if one is not None]
        before = [one._version for one in watched]
        outcome = outcome_of(lambda: self._operator(grads, mask, *self._saved))
        self._tally.calls += 1
        if before != [one._version for one in watched]:
            self._report("operator", "an argument", "it was written to")
        return outcome

    def _compare(
        self, compared: str, described: str, expected: Outcome, actual: Outcome, *, history: bool = False
    ) -> None:
        what = difference(as_operators_say(self.name, expected), actual, history=history)
        if what:
            self._report(compared, described, what)

    def _report(self, compared: str, described: str, what: str) -> None:
        self.disagreements.append(Disagreement(self.name, compared, described, what))


def _flags(flags: Sequence[bool]) -> str:
    return "".join("1" if flag else "0" for flag in flags)


def _tensors(values: Sequence[object]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list):
            yield from (one for one in value if isinstance(one, torch.Tensor))
