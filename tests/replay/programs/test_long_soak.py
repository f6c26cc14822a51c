"""A hundred thousand backwards leave nothing behind: of more graphs than there is room for plans, in many ways."""

from __future__ import annotations

import sys

import pytest

from tests.replay.programs.long_run import BACKWARDS, GRAPHS, run_long
from tests.replay.programs.test_soak import PLANS, RESIDENT_SLACK, SLACK

GRAPHS_SLACK = 4 * 2**20
"""Bytes by which the code of the graphs that are held may differ from that of others. All that were compiled take more
than ten times as much."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is asked of glibc")


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKWARDS)
def test_many_backwards_leave_nothing_behind(backend: str) -> None:
    run = run_long(backend)
    first, *others = run.looks
    for look in others:
        assert look.tensors == first.tensors
        assert look.objects - first.objects < 100
        assert look.allocated - first.allocated < (SLACK if backend == "native" else GRAPHS_SLACK)
        assert look.resident - first.resident < RESIDENT_SLACK
    assert run.captures + run.replays + run.fallbacks >= BACKWARDS[backend]
    assert run.plans == PLANS
    assert run.captures > GRAPHS
    assert run.replays > BACKWARDS[backend] / 4
    assert run.fallbacks == 0
