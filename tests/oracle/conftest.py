"""Runs programs with the checkers that tests of one worker share, and tells the plugin what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch

from tests.oracle.checker import Checker
from tests.oracle.findings import Findings
from tests.oracle.plugin import FINDINGS
from tests.oracle.programs import Program, check_program


@dataclass(frozen=True)
class ProgramRunner:
    """Checks programs. What was found right in one program is not compared again in another."""

    findings: Findings
    real: Checker
    stand_in: Checker
    """What is right with a stand-in may still be wrong with torch's own kernel."""

    def run(self, program: Program, size: int, limit: int | None = None) -> set[str]:
        """Check a program, one of ``size`` of its source, or only its first ``limit`` samples.

        Returns the nodes that were met. Fails with a list of disagreements.
        """
        stood_in = program.source == "stand_in"
        checker = self.stand_in if stood_in else self.real
        tally = checker.tally
        before = tally.counts()
        tally.begin()
        disagreements = check_program(checker, program, limit)
        self.findings.counts.update(tally.counts() - before)
        self.findings.add(tally.covered, stood_in=stood_in)
        if limit is None:
            self.findings.ran.setdefault(program.source, set()).add(program.name)
            self.findings.sizes[program.source] = size
        listed = "\n".join(map(str, disagreements[:20]))
        assert not disagreements, f"{len(disagreements)} disagreements, the first ones:\n{listed}"
        return set(tally.met)


@pytest.fixture(scope="session")
def runner(request: pytest.FixtureRequest) -> Iterator[ProgramRunner]:
    threads = torch.get_num_threads()
    # Several threads would add up in the order in which they come to an end.
    torch.set_num_threads(1)
    yield ProgramRunner(request.config.stash[FINDINGS], Checker(), Checker())
    torch.set_num_threads(threads)
