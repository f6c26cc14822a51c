"""What a test run found out about coverage: gathered in each worker, merged where the run is reported."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Findings:
    """Which programs ran and which nodes they exercised."""

    exercised: set[str] = field(default_factory=set)
    """Nodes that were met and compared, all kernels being torch's own."""
    with_stand_ins: set[str] = field(default_factory=set)
    """Nodes that were met and compared with stand-ins for kernels that this machine lacks."""
    ran: dict[str, set[str]] = field(default_factory=dict)
    """Names of the programs that ran, by source."""
    sizes: dict[str, int] = field(default_factory=dict)
    """How many programs each source has."""
    counts: Counter[str] = field(default_factory=Counter)
    """Samples, nodes, kinds, calls."""

    @property
    def is_complete(self) -> bool:
        """Whether every program of every source ran."""
        return set(self.ran) == set(SOURCES) and all(
            len(names) == self.sizes.get(source) for source, names in self.ran.items()
        )

    def merge(self, other: Findings) -> None:
        self.exercised |= other.exercised
        self.with_stand_ins |= other.with_stand_ins
        for source, names in other.ran.items():
            self.ran.setdefault(source, set()).update(names)
        self.sizes.update(other.sizes)
        self.counts.update(other.counts)

    def to_plain(self) -> dict[str, Any]:
        """As lists and dicts, which can be sent between processes."""
        return {
            "exercised": sorted(self.exercised),
            "with_stand_ins": sorted(self.with_stand_ins),
            "ran": {source: sorted(names) for source, names in self.ran.items()},
            "sizes": self.sizes,
            "counts": dict(self.counts),
        }

    @staticmethod
    def from_plain(plain: dict[str, Any]) -> Findings:
        return Findings(
            exercised=set(plain["exercised"]),
            with_stand_ins=set(plain["with_stand_ins"]),
            ran={source: set(names) for source, names in plain["ran"].items()},
            sizes=plain["sizes"],
            counts=Counter(plain["counts"]),
        )


SOURCES = (
    "op",
    "foreach",
    "module",
    "sparse_coo",
    "sparse_csr",
    "sparse_csc",
    "sparse_bsr",
    "sparse_bsc",
    "nested",
    "extra",
    "stand_in",
)
"""Every source of programs; a run is complete if all of all of them ran."""
