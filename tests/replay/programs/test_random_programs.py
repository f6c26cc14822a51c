"""Random programs look the same from outside in eager and under capture, whatever becomes of their backwards."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.replay.programs.machine import run_program
from tests.replay.programs.observations import log_difference
from tests.replay.programs.program import Program
from tests.replay.programs.random_programs import programs
from tests.replay.programs.runs import differences

_EACH = settings(
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def check(program: Program) -> None:
    found = differences(partial(run_program, program))
    assert not found, "\n".join(found)


@settings(_EACH, max_examples=100)
@given(programs)
def test_eager_agrees_with_itself(program: Program) -> None:
    difference = log_difference(run_program(program), run_program(program))
    assert not difference, difference


@settings(_EACH, max_examples=150)
@given(programs)
def test_programs_look_the_same(program: Program) -> None:
    check(program)


@pytest.mark.slow
@settings(_EACH, max_examples=1500)
@given(programs)
def test_many_programs_look_the_same(program: Program) -> None:
    check(program)
