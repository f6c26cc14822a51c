"""A run that exercises less than the committed coverage promises fails; one that ran only in part is not judged."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.oracle import plugin
from tests.oracle.coverage import Coverage, read_coverage, write_coverage
from tests.oracle.findings import SOURCES, Findings
from tests.oracle.tally import Column

COMMITTED = Coverage(
    frozenset({"A", "B"}), frozenset({"C"}), {"D": "CUDA only"}, {Column.STEP: frozenset({"A"})}
)


def _session(findings: Findings, *, update: bool = False) -> Any:
    config = SimpleNamespace(stash=pytest.Stash(), getoption=lambda _: update)
    config.stash[plugin.FINDINGS] = findings
    return SimpleNamespace(config=config, exitstatus=pytest.ExitCode.OK)


def _complete(exercised: str, with_stand_ins: str, stepped: str = "A") -> Findings:
    return Findings(
        set(exercised),
        set(with_stand_ins),
        {Column.STEP: set(stepped)},
        {source: {"x"} for source in SOURCES},
        dict.fromkeys(SOURCES, 1),
    )


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A coverage file of its own, for four nodes."""
    place = tmp_path / "coverage.json"
    write_coverage(COMMITTED, place)
    monkeypatch.setattr(plugin, "read_coverage", lambda: read_coverage(place))
    monkeypatch.setattr(plugin, "write_coverage", lambda coverage: write_coverage(coverage, place))
    monkeypatch.setattr(plugin, "all_nodes", lambda: frozenset("ABCD"))
    return place


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        (_complete("AB", "C"), pytest.ExitCode.OK),
        (_complete("ABD", "C"), pytest.ExitCode.OK),
        (_complete("A", "C"), pytest.ExitCode.TESTS_FAILED),
        (_complete("AB", ""), pytest.ExitCode.TESTS_FAILED),
        (_complete("AB", "C", ""), pytest.ExitCode.TESTS_FAILED),
        (Findings({"A"}), pytest.ExitCode.OK),
    ],
    ids=["as promised", "more", "less", "less with stand-ins", "less of a column", "only a part ran"],
)
@pytest.mark.usefixtures("file")
def test_a_run_is_judged(findings: Findings, status: pytest.ExitCode) -> None:
    session = _session(findings)
    plugin.pytest_sessionfinish(session)
    assert session.exitstatus == status


def test_a_complete_run_updates_the_file(file: Path) -> None:
    plugin.pytest_sessionfinish(_session(_complete("ABC", ""), update=True))
    columns: dict[Column, frozenset[str]] = {
        column: frozenset("A" if column is Column.STEP else "") for column in Column
    }
    assert read_coverage(file) == Coverage(frozenset("ABC"), frozenset(), {"D": "CUDA only"}, columns)


def test_a_part_of_a_run_leaves_the_file(file: Path) -> None:
    plugin.pytest_sessionfinish(_session(Findings({"A"}), update=True))
    assert read_coverage(file) == COMMITTED


@pytest.mark.usefixtures("file")
def test_a_worker_hands_its_findings_on() -> None:
    session = _session(_complete("A", ""))
    session.config.workeroutput = {}
    plugin.pytest_sessionfinish(session)
    controller = _session(Findings({"B"}))
    plugin.pytest_testnodedown(
        SimpleNamespace(workeroutput=session.config.workeroutput, config=controller.config), None
    )
    assert controller.config.stash[plugin.FINDINGS].exercised == {"A", "B"}
    assert session.exitstatus == pytest.ExitCode.OK
