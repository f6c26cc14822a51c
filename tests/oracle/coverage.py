"""The committed coverage: of which nodes the oracle compares what, and of the rest why not. It may only improve."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.findings import Findings
from tests.oracle.tally import Column

COVERAGE_FILE = Path(__file__).with_name("coverage.json")

NO_DERIVATIVE = "has no derivative: its formula is not_implemented; that it raises, and what, is compared"
"""The reason for nodes that no program makes give a gradient, and that are compared all the same."""


@dataclass(frozen=True)
class Coverage:
    """One state of coverage."""

    exercised: frozenset[str]
    """Nodes whose live node and operator gave a gradient, and the same."""
    with_stand_ins: frozenset[str]
    """The same, but with stand-ins for kernels of other hardware."""
    not_exercised: dict[str, str] = field(default_factory=dict)
    """The other nodes, with the reason why no program makes them give a gradient."""
    columns: dict[Column, frozenset[str]] = field(default_factory=dict)
    """Nodes of which each was compared with a gradient."""

    @property
    def total(self) -> int:
        return len(self.exercised) + len(self.with_stand_ins) + len(self.not_exercised)


def read_coverage(file: Path = COVERAGE_FILE) -> Coverage:
    plain = json.loads(file.read_text())
    return Coverage(
        frozenset(plain["exercised"]),
        frozenset(plain["with_stand_ins"]),
        dict(plain["not_exercised"]),
        {Column(column): frozenset(nodes) for column, nodes in plain["columns"].items()},
    )


def write_coverage(coverage: Coverage, file: Path = COVERAGE_FILE) -> None:
    plain = {
        "exercised": sorted(coverage.exercised),
        "with_stand_ins": sorted(coverage.with_stand_ins),
        "not_exercised": dict(sorted(coverage.not_exercised.items())),
        "columns": {str(column): sorted(nodes) for column, nodes in coverage.columns.items()},
    }
    file.write_text(json.dumps(plain, indent=2) + "\n")


def updated(committed: Coverage, findings: Findings, all_nodes: frozenset[str]) -> Coverage:
    """The coverage after a complete run. A node that fell out has an empty reason, which a test refuses."""
    exercised = frozenset(findings.exercised)
    with_stand_ins = frozenset(findings.with_stand_ins) - exercised
    rest = all_nodes - exercised - with_stand_ins
    return Coverage(
        exercised,
        with_stand_ins,
        {node: committed.not_exercised.get(node, "") for node in rest},
        {column: frozenset(findings.columns.get(column, ())) for column in Column},
    )


def losses(committed: Coverage, findings: Findings) -> list[str]:
    """Nodes that the committed file promises and a complete run did not exercise as promised."""
    real = committed.exercised - findings.exercised
    stood_in = committed.with_stand_ins - findings.exercised - findings.with_stand_ins
    return sorted(real | stood_in) + [
        f"{node} ({column})"
        for column, nodes in committed.columns.items()
        for node in sorted(nodes - findings.columns.get(column, set()))
    ]


def gains(committed: Coverage, findings: Findings) -> list[str]:
    """Nodes that a run exercised better than the committed file says."""
    real = findings.exercised - committed.exercised
    stood_in = findings.with_stand_ins - committed.exercised - committed.with_stand_ins
    return sorted(real | stood_in) + [
        f"{node} ({column})"
        for column, nodes in findings.columns.items()
        for node in sorted(nodes - committed.columns.get(column, frozenset()))
    ]
