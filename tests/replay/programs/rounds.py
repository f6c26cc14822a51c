"""Rounds of backwards after which as much memory is held as before, and the looks at it.

They run in a process of their own: in one that ran other tests, what those left behind may be collected at any time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

import backbind
import torch

from tests.plan.random_programs import run_program as run_small_program
from tests.processes import run_python
from tests.replay.programs.machine import run_program
from tests.replay.programs.memory import Memory, memory
from tests.replay.programs.program import Ask, Branch, Checkpoint, Do, Hook, Program, Saving, Step

ROUNDS = {"native": 6, "graph": 2}
GRAPHS = 400
"""More than there is room for plans."""
TIMEOUT = 600.0
"""Seconds."""

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


def changing_graphs(backend: str) -> None:
    """More graphs than there is room for plans, some of them twice in a row."""
    with backbind.capture(backend=backend):
        for seed in range(GRAPHS):
            for _ in range(2):
                run_small_program(seed, length=10 + seed % 20).loss.backward()


def features_and_errors(backend: str) -> None:
    with backbind.capture(backend=backend):
        for _ in range(50):
            run_program(_FEATURES)


def sessions(backend: str) -> None:
    loss = run_small_program(1).loss
    for _ in range(500):
        with backbind.capture(backend=backend) as session:
            loss.backward(retain_graph=True)
        assert session.stats.replays + session.stats.captures == 1


KINDS: dict[str, Callable[[str], None]] = {
    one.__name__: one for one in (changing_graphs, features_and_errors, sessions)
}


@dataclass(frozen=True)
class Looks:
    """What was held before the rounds and after them."""

    before: Memory
    after: Memory
    plans: int
    """How many plans there were in the end."""


def run_rounds(kind: str, backend: str) -> Looks:
    """Run rounds of one of the KINDS in a new process."""
    said = json.loads(run_python("-m", __name__, kind, backend, timeout=TIMEOUT).stdout)
    return Looks(Memory(**said["before"]), Memory(**said["after"]), said["plans"])


def _main(kind: str, backend: str) -> None:
    torch.set_num_threads(1)
    one_round = KINDS[kind]
    one_round(backend)
    one_round(backend)
    before = memory()
    for _ in range(ROUNDS[backend]):
        one_round(backend)
    after = memory()
    print(json.dumps(asdict(Looks(before, after, backbind.stats().plans))))


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2])
