"""What the comparisons of the oracle found and what they covered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class Column(StrEnum):
    """What of a node was compared, with at least one gradient on both sides."""

    OPERATOR = "operator"
    """The operator with the live node."""
    DELEGATE = "delegate"
    """The delegate with the operator or the live node."""
    STEP = "step"
    """What a replay runs with the live node."""
    ADVERSARIAL = "adversarial"
    """The operator with the live node, gradients or saved values being infinite, NaN, subnormal and so on."""
    REQUIRES_GRAD = "requires_grad"
    """The operator with the live node, with saved values that require grad and with saved values that do not."""
    TRACED = "traced"
    """A graph that make_fx made of the operator with the operator, in all grad modes and over other strides."""


@dataclass(frozen=True)
class Disagreement:
    """One call whose outcome was not the reference."""

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
    comparisons: Counter[Column] = field(default_factory=Counter)
    """How often each was compared, with a gradient or without."""
    met: set[str] = field(default_factory=set)
    """Nodes that were met and compared, now or earlier with a call of the same kind."""
    covered: dict[Column, set[str]] = field(default_factory=lambda: {column: set() for column in Column})
    """Nodes of which each was compared with a gradient, now or earlier with a call of the same kind."""
    out_of_reach: Counter[str] = field(default_factory=Counter)
    """Nodes of which no backward got as far as to show what a gradient for them looks like."""

    def begin(self) -> None:
        """Forget which nodes were met."""
        self.met.clear()
        for nodes in self.covered.values():
            nodes.clear()

    def add(self, node: str, columns: Iterable[Column]) -> None:
        """A node was met, and this was compared with a gradient."""
        self.met.add(node)
        for column in columns:
            self.covered[column].add(node)

    def counts(self) -> Counter[str]:
        return Counter(
            {
                "samples": self.samples,
                "refused": self.refused,
                "nodes": self.nodes,
                "kinds": self.kinds,
                "calls": self.calls,
                "out of reach": self.out_of_reach.total(),
                **{f"comparisons ({column})": self.comparisons[column] for column in Column},
            }
        )
