"""The node that each extra program is for, and whatever else is in its graph."""

from __future__ import annotations

from tests.oracle.conftest import ProgramRunner
from tests.oracle.extra_programs import EXTRAS
from tests.oracle.programs import Program, parameters

PROGRAMS = [extra.program() for extra in EXTRAS]


@parameters(PROGRAMS)
def test_operators_equal_live_nodes(program: Program, runner: ProgramRunner) -> None:
    exercised = runner.run(program, len(PROGRAMS))
    assert program.name in exercised, f"the program did not lead to {program.name}"
