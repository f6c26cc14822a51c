"""Nodes of other hardware: the operator hands the same arguments to the same kernels as the live node."""

from __future__ import annotations

from tests.oracle.conftest import ProgramRunner
from tests.oracle.programs import Program, parameters
from tests.oracle.stand_in_programs import STAND_INS

PROGRAMS = [row.program() for row in STAND_INS]


@parameters(PROGRAMS)
def test_operators_equal_live_nodes(program: Program, runner: ProgramRunner) -> None:
    exercised = runner.run(program, len(PROGRAMS))
    assert program.name in exercised, f"the program did not lead to {program.name}"
