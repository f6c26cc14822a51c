"""What a test run found out about coverage: gathered in each worker, merged where the run is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.tally import Column


@dataclass
class Findings:
    """Which programs ran and which nodes they exercised."""

    exercised: set[str] = field(default_factory=set)
    """Nodes that were compared with a gradient, all kernels being torch's own."""
    with_stand_ins: set[str] = field(default_factory=set)
    """The same with stand-ins for kernels that this machine lacks."""
    columns: dict[Column, set[str]] = field(default_factory=dict)
    """Nodes of which each was compared with a gradient, with whatever kernels."""
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

    def add(self, covered: Mapping[Column, set[str]], *, stood_in: bool) -> None:
        """What one program showed."""
        (self.with_stand_ins if stood_in else self.exercised).update(covered[Column.OPERATOR])
        for column in Column:
            self.columns.setdefault(column, set()).update(covered[column])

    def merge(self, other: Findings) -> None:
        self.exercised |= other.exercised
        self.with_stand_ins |= other.with_stand_ins
        for column, nodes in other.columns.items():
            self.columns.setdefault(column, set()).update(nodes)
        for source, names in other.ran.items():
            self.ran.setdefault(source, set()).update(names)
        self.sizes.update(other.sizes)
        self.counts.update(other.counts)

    def to_plain(self) -> dict[str, Any]:
        """As lists and dicts, which can be sent between processes."""
        return {
            "exercised": sorted(self.exercised),
            "with_stand_ins": sorted(self.with_stand_ins),
            "columns": {str(column): sorted(nodes) for column, nodes in self.columns.items()},
            "ran": {source: sorted(names) for source, names in self.ran.items()},
            "sizes": self.sizes,
            "counts": dict(self.counts),
        }

    @staticmethod
    def from_plain(plain: dict[str, Any]) -> Findings:
        return Findings(
            exercised=set(plain["exercised"]),
            with_stand_ins=set(plain["with_stand_ins"]),
            columns={Column(column): set(nodes) for column, nodes in plain["columns"].items()},
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
