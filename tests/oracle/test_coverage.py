"""The committed coverage is whole and has a reason for every gap; a loss is seen, and so is a gain."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import backbind
import pytest
from backbind._namespace import load_operators

from tests.oracle.coverage import (
    NO_DERIVATIVE,
    Coverage,
    gains,
    losses,
    read_coverage,
    updated,
    write_coverage,
)
from tests.oracle.extra_programs import EXTRAS
from tests.oracle.findings import SOURCES, Findings
from tests.oracle.stand_in_programs import STAND_INS
from tests.oracle.tally import Column

COMMITTED = Coverage(
    frozenset({"A", "B"}), frozenset({"C"}), {"D": "CUDA only"}, {Column.STEP: frozenset({"A"})}
)


def _findings(exercised: str, with_stand_ins: str, stepped: str = "A") -> Findings:
    return Findings(
        exercised=set(exercised), with_stand_ins=set(with_stand_ins), columns={Column.STEP: set(stepped)}
    )


@pytest.fixture
def committed(request: pytest.FixtureRequest) -> Coverage:
    if request.config.getoption("--update-coverage"):
        pytest.skip("this run writes the file that the test is about")
    return read_coverage()


def test_the_committed_file_has_every_node_once(committed: Coverage) -> None:
    listed = [*committed.exercised, *committed.with_stand_ins, *committed.not_exercised]
    assert sorted(listed) == sorted(load_operators())
    assert set(committed.columns) == set(Column)
    compared = committed.exercised | committed.with_stand_ins
    assert {column: nodes - compared for column, nodes in committed.columns.items() if nodes - compared} == {}


def test_every_gap_has_a_reason(committed: Coverage) -> None:
    assert [node for node, reason in committed.not_exercised.items() if not reason] == []


def test_every_row_of_the_tables_is_counted(committed: Coverage) -> None:
    raising = {node for node, reason in committed.not_exercised.items() if reason == NO_DERIVATIVE}
    assert {extra.node for extra in EXTRAS} - committed.exercised - raising == set()
    assert {
        row.extra.node for row in STAND_INS
    } - committed.exercised - committed.with_stand_ins - raising == set()


def test_nodes_without_a_derivative_have_none(committed: Coverage) -> None:
    raising = {node for node, reason in committed.not_exercised.items() if reason == NO_DERIVATIVE}
    for node in raising:
        formulas = backbind.ops.get(node).formulas
        assert all(formula.text.startswith("not_implemented") for formula in formulas), node


def test_a_node_that_is_no_longer_exercised_is_a_loss() -> None:
    assert losses(COMMITTED, _findings("A", "C")) == ["B"]
    assert losses(COMMITTED, _findings("AB", "")) == ["C"]
    assert losses(COMMITTED, _findings("A", "BC")) == ["B"]
    assert losses(COMMITTED, _findings("ABC", "")) == []
    assert losses(COMMITTED, _findings("ABD", "C")) == []
    assert losses(COMMITTED, _findings("ABD", "C", stepped="")) == ["A (step)"]


def test_a_node_that_is_exercised_better_is_a_gain() -> None:
    assert gains(COMMITTED, _findings("AB", "C")) == []
    assert gains(COMMITTED, _findings("ABC", "")) == ["C"]
    assert gains(COMMITTED, _findings("AB", "CD")) == ["D"]
    assert gains(COMMITTED, _findings("AB", "C", stepped="AB")) == ["B (step)"]


def test_an_update_keeps_reasons_and_asks_for_new_ones() -> None:
    found = updated(COMMITTED, _findings("A", "C"), frozenset("ABCDE"))
    columns: dict[Column, frozenset[str]] = {
        column: frozenset("A" if column is Column.STEP else "") for column in Column
    }
    assert found == Coverage(frozenset("A"), frozenset("C"), {"B": "", "D": "CUDA only", "E": ""}, columns)


def test_coverage_survives_its_file(tmp_path: Path) -> None:
    write_coverage(COMMITTED, tmp_path / "coverage.json")
    assert read_coverage(tmp_path / "coverage.json") == COMMITTED


def test_findings_of_workers_add_up() -> None:
    step, traced = Column.STEP, Column.TRACED
    first = Findings({"A"}, {"C"}, {step: {"A"}}, {"op": {"x"}}, {"op": 2}, Counter(calls=3))
    second = Findings(
        {"B"},
        set(),
        {step: {"B"}, traced: {"B"}},
        {"op": {"y"}, "extra": {"z"}},
        {"op": 2, "extra": 1},
        Counter(calls=4),
    )
    first.merge(Findings.from_plain(second.to_plain()))
    assert first == Findings(
        {"A", "B"},
        {"C"},
        {step: {"A", "B"}, traced: {"B"}},
        {"op": {"x", "y"}, "extra": {"z"}},
        {"op": 2, "extra": 1},
        Counter(calls=7),
    )


def test_what_a_program_covered_is_added() -> None:
    findings = Findings()
    covered: dict[Column, set[str]] = {column: set() for column in Column}
    findings.add(covered | {Column.OPERATOR: {"A", "B"}, Column.STEP: {"B"}}, stood_in=False)
    findings.add(covered | {Column.OPERATOR: {"C"}, Column.STEP: {"C"}}, stood_in=True)
    assert (findings.exercised, findings.with_stand_ins) == ({"A", "B"}, {"C"})
    assert findings.columns == covered | {Column.OPERATOR: {"A", "B", "C"}, Column.STEP: {"B", "C"}}


def test_a_run_is_complete_when_all_programs_of_all_sources_ran() -> None:
    sizes = dict.fromkeys(SOURCES, 1)
    complete = Findings(ran={source: {"x"} for source in SOURCES}, sizes=sizes)
    assert complete.is_complete
    assert not Findings(ran=complete.ran, sizes=sizes | {"op": 2}).is_complete
    assert not Findings(ran={"op": {"x"}}, sizes={"op": 1}).is_complete
