"""Thousands of backwards with changing graphs leave no more behind than a few did."""

from __future__ import annotations

import sys
from collections.abc import Callable

import backbind
import pytest

from tests.plan.random_programs import run_program as run_small_program
from tests.replay.programs.machine import run_program
from tests.replay.programs.memory import memory
from tests.replay.programs.program import Ask, Branch, Checkpoint, Do, Hook, Program, Saving, Step

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is asked of glibc")

PLANS = 128
"""More are never held."""

ROUNDS = 6
SLACK = 64 * 1024
"""Bytes by which a round may end with more than the one before it: buffers of Python and torch. Much less than a plan
or a graph for each backward would be."""
RESIDENT_SLACK = 8 * 2**20
"""Bytes by which the process may grow, for it does not give back to the system all that it could."""

GRAPHS = 400

_FEATURES = Program(
    statements=(
        Hook("post-accumulate", 0),
        Hook("before node", 1, "add a hook"),
        Do("linear", (0, 0)),
        Hook("tensor", -1, "double"),
        Hook("retain", -1),
        Saving("cloned", (Do("tanh", (-1, -1)), Do("in place on two views", (-1, 0)))),
        Checkpoint(False, (Do("gelu", (0, 0)), Do("mul", (-1, 0)))),
        Branch((Do("function of two", (-1, -2)),)),
        Hook("behind node", -1, "reentrant backward"),
        Do("sparse embedding", (-1, -1)),
        Do("inner backward", (-1, -1)),
        Do("fails", (-1, -1)),
    ),
    steps=(
        Step(Ask((-2,)), clears=None),
        Step(Ask((-2, -4), inputs=(0, -3), retain_graph=True, again=True), rows=3, takes_branches=False),
        Step(Ask((-3,), grad=True, create_graph=True)),
        Step(Ask((-1,)), rows=1),  # which raises
        Step(Ask((-2,), summed=False, again=True), rows=5),  # and so does this, the second time
    ),
)
"""A bit of everything."""


def changing_graphs() -> None:
    """More graphs than there is room for plans, some of them twice in a row."""
    with backbind.capture():
        for seed in range(GRAPHS):
            for _ in range(2):
                run_small_program(seed, length=10 + seed % 20).loss.backward()


def features_and_errors() -> None:
    with backbind.capture():
        for _ in range(50):
            run_program(_FEATURES)


def sessions() -> None:
    loss = run_small_program(1).loss
    for _ in range(500):
        with backbind.capture() as session:
            loss.backward(retain_graph=True)
        assert session.stats.replays + session.stats.captures == 1


@pytest.mark.slow
@pytest.mark.parametrize("one_round", [changing_graphs, features_and_errors, sessions])
def test_memory_stays_constant(one_round: Callable[[], None]) -> None:
    backbind.reset()
    one_round()
    one_round()
    before = memory()
    for _ in range(ROUNDS):
        one_round()
    after = memory()
    assert after.tensors == before.tensors
    assert after.objects - before.objects < 100
    assert after.allocated - before.allocated < SLACK
    assert after.resident - before.resident < RESIDENT_SLACK
    assert backbind.stats().plans <= PLANS


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
