"""Thousands of backwards with changing graphs leave no more behind than a few did."""

from __future__ import annotations

import sys

import backbind
import pytest

from tests.plan.random_programs import run_program as run_small_program
from tests.replay.programs.rounds import KINDS, run_rounds

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is asked of glibc")

PLANS = 128
"""More are never held."""

SLACK = 64 * 1024
"""Bytes by which a round may end with more than the one before it: buffers of Python and torch. Much less than a plan
or a graph for each backward would be."""
RESIDENT_SLACK = 8 * 2**20
"""Bytes by which the process may grow, for it does not give back to the system all that it could."""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["native", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_memory_stays_constant(kind: str, backend: str) -> None:
    looks = run_rounds(kind, backend)
    assert looks.after.tensors == looks.before.tensors
    assert looks.after.objects - looks.before.objects < 100
    assert looks.after.allocated - looks.before.allocated < SLACK
    assert looks.after.resident - looks.before.resident < RESIDENT_SLACK
    assert looks.plans <= PLANS


@pytest.mark.slow
def test_what_is_counted_stays_bounded() -> None:
    """No two graphs are alike, so that every backward may have a reason of its own not to be replayed."""
    backbind.reset()
    with backbind.capture() as session:
        for seed in range(3000):
            run_small_program(seed, length=20).loss.backward()
    stats = session.stats
    assert stats.captures + stats.replays + stats.fallbacks == 3000
    assert stats.plans <= PLANS
    kinds = len(stats.recapture_reasons) + len(stats.fallback_reasons) + len(stats.opaque_steps)
    assert kinds <= 2 * 65 + 4, f"{kinds} reasons are kept for ever"
