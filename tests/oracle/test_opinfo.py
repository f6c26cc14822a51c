"""Every operator of op_db, over all its sample inputs."""

from __future__ import annotations

import pytest

from tests.oracle.conftest import ProgramRunner
from tests.oracle.opinfo_programs import dense_programs
from tests.oracle.programs import Program, by_source, parameters

PROGRAMS = dense_programs()
SIZES = by_source(PROGRAMS)


@pytest.mark.slow
@parameters(PROGRAMS)
def test_operators_equal_live_nodes(program: Program, runner: ProgramRunner) -> None:
    runner.run(program, SIZES[program.source])


FIRST_DTYPE = list({program.name.rpartition("-")[0]: program for program in reversed(PROGRAMS)}.values())


@parameters(FIRST_DTYPE)
def test_operators_equal_live_nodes_in_the_first_sample(program: Program, runner: ProgramRunner) -> None:
    runner.run(program, SIZES[program.source], limit=1)
