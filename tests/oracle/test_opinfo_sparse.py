"""Operators on sparse tensors."""

from __future__ import annotations

import pytest

from tests.oracle.conftest import ProgramRunner
from tests.oracle.opinfo_programs import sparse_programs
from tests.oracle.programs import Program, by_source, parameters

PROGRAMS = sparse_programs()
SIZES = by_source(PROGRAMS)


@pytest.mark.slow
@parameters(PROGRAMS)
def test_operators_equal_live_nodes(program: Program, runner: ProgramRunner) -> None:
    runner.run(program, SIZES[program.source])
