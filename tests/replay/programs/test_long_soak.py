"""A hundred thousand backwards leave nothing behind: of more graphs than there is room for plans, in many ways."""

from __future__ import annotations

import sys

import pytest

from tests.replay.programs.long_run import BACKWARDS, GRAPHS, run_long
from tests.replay.programs.test_soak import PLANS, RESIDENT_SLACK, SLACK

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is asked of glibc")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["native", "graph"])
def test_a_hundred_thousand_backwards_leave_nothing_behind(backend: str) -> None:
    run = run_long(backend)
    first, *others = run.looks
    for look in others:
        assert look.tensors == first.tensors
        assert look.objects - first.objects < 100
        assert look.allocated - first.allocated < SLACK
        assert look.resident - first.resident < RESIDENT_SLACK
    assert run.captures + run.replays + run.fallbacks >= BACKWARDS
    assert run.plans == PLANS
    assert run.captures > GRAPHS
    assert run.replays > BACKWARDS / 4
    assert run.fallbacks == 0
