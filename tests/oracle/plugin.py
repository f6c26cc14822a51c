"""Reports coverage of the oracle after a test run, fails the run where coverage fell, updates the committed file.

A pytest plugin rather than a test, because with several workers no test sees what the others did.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.coverage import COVERAGE_FILE, gains, losses, read_coverage, updated, write_coverage
from tests.oracle.findings import Findings
from tests.oracle.tally import Column

FINDINGS = pytest.StashKey[Findings]()
_KEY = "backbind_oracle"
WHAT = {
    Column.OPERATOR: "operator and live node",
    Column.DELEGATE: "operator and delegate",
    Column.STEP: "step and live node",
    Column.ADVERSARIAL: "operator and live node with infinities, NaN, subnormals ...",
    Column.REQUIRES_GRAD: "operator and live node with saved values that do and do not require grad",
    Column.TRACED: "graph of make_fx and operator, in each grad mode and on other strides",
}
UPDATE_COMMAND = "./dev test tests/oracle -n 2 --update-coverage"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-coverage",
        action="store_true",
        help="write tests/oracle/coverage.json anew after a run of all of tests/oracle",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FINDINGS] = Findings()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker has ended: take over what it found."""
    plain = getattr(node, "workeroutput", {}).get(_KEY)
    if plain is not None:
        node.config.stash[FINDINGS].merge(Findings.from_plain(plain))


def pytest_sessionfinish(session: pytest.Session) -> None:
    findings = session.config.stash[FINDINGS]
    workeroutput = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        workeroutput[_KEY] = findings.to_plain()
        return
    if not findings.is_complete or session.exitstatus != pytest.ExitCode.OK:
        return
    committed = read_coverage()
    if session.config.getoption("--update-coverage"):
        write_coverage(updated(committed, findings, all_nodes()))
    elif losses(committed, findings):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    findings = config.stash[FINDINGS]
    if not findings.ran:
        return
    committed = read_coverage()
    terminalreporter.section("oracle: operators against live nodes")
    for line in report(findings, config.getoption("--update-coverage")):
        terminalreporter.write_line(line)
    if findings.is_complete:
        lost = losses(committed, findings)
        if lost:
            terminalreporter.write_line(
                f"FAILED: nodes that {COVERAGE_FILE.name} says are exercised were not: {', '.join(lost)}",
                red=True,
            )
        gained = gains(committed, findings)
        if gained:
            terminalreporter.write_line(
                f"coverage rose by {', '.join(gained)}; to commit it: {UPDATE_COMMAND}", green=True
            )


def all_nodes() -> frozenset[str]:
    """Names of all nodes."""
    from backbind._namespace import load_operators  # a controller that reports on workers never needs torch

    return frozenset(load_operators())


def report(findings: Findings, update: bool) -> list[str]:
    """What to print after a run."""
    committed = read_coverage()
    real, stood_in = len(findings.exercised), len(findings.with_stand_ins - findings.exercised)
    programs = sum(len(names) for names in findings.ran.values())
    lines = [
        f"{real + stood_in} of {committed.total} nodes exercised: {real} with torch's kernels, "
        f"{stood_in} with stand-ins for absent hardware",
        *(
            f"{len(findings.columns.get(column, ())):>4} nodes: {WHAT[column]} "
            f"({findings.counts[f'comparisons ({column})']} comparisons)"
            for column in Column
        ),
        f"{programs} programs; "
        + ", ".join(f"{count} {what}" for what, count in sorted(findings.counts.items()) if "(" not in what),
    ]
    if not findings.is_complete:
        lines.append(f"a part of the oracle ran; {COVERAGE_FILE.name} is judged when all of it did")
        if update:
            lines.append(f"{COVERAGE_FILE.name} stays as it is: updating takes a run of all of tests/oracle")
    return lines
