"""A hundred thousand backwards of more graphs than there is room for plans, in many ways, and looks at what is held.

They run in a process of their own, as the rounds of rounds.py do.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import Any

import backbind
import pytest
import torch

from tests.plan.random_programs import Program, run_program
from tests.processes import run_python
from tests.replay.programs.memory import Memory, memory
from tests.replay.programs.rounds import TIMEOUT

BACKWARDS = {"native": 100_000, "graph": 20_000}
"""By backend: most graphs that are met again must be compiled again."""
LOOKS = 5
"""How often memory is looked at, after the same number of backwards each time."""
GRAPHS = 1000
RUNS = 3
"""Each graph comes this often in a row, so that its plan is used before it has to go."""


def plain(program: Program) -> None:
    program.loss.backward()


def kept(program: Program) -> None:
    program.loss.backward(retain_graph=True)
    program.loss.backward()


def of_one_leaf(program: Program) -> None:
    program.loss.backward(inputs=program.leaves[:1])


def with_hooks(program: Program) -> None:
    node = program.loss.grad_fn
    assert node is not None
    node.register_prehook(lambda gradients: tuple(one * 2 for one in gradients))
    node.register_hook(lambda gradients, _: None)
    program.leaves[0].register_hook(lambda gradient: gradient + 1)
    program.leaves[-1].register_post_accumulate_grad_hook(lambda leaf: None)
    program.loss.backward()


def with_a_graph_of_its_own(program: Program) -> None:
    gradients = torch.autograd.grad(program.loss, program.leaves, create_graph=True, allow_unused=True)
    weighted = [one * leaf for one, leaf in zip(gradients, program.leaves, strict=True) if one is not None]
    torch.stack(weighted).sum().backward()


def through_a_function(program: Program) -> None:
    doubled: torch.Tensor = _Doubled.apply(program.loss)  # type: ignore[no-untyped-call]
    doubled.backward()


def failing(program: Program) -> None:
    def fail(gradient: torch.Tensor) -> None:
        raise KeyError("a hook that fails")

    program.loss.register_hook(fail)
    with pytest.raises(KeyError, match="a hook that fails"):
        program.loss.backward()


def of_a_freed_graph(program: Program) -> None:
    squared = program.loss.square()
    squared.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        squared.backward()


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(value)
        return value * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        (value,) = ctx.saved_tensors
        return gradient * 2 + value * 0


WAYS = (
    plain,
    with_hooks,
    kept,
    with_a_graph_of_its_own,
    failing,
    plain,
    through_a_function,
    of_one_leaf,
    of_a_freed_graph,
    plain,
    plain,
)
"""Their number and RUNS have no common factor, so that every graph meets every way."""


@dataclass(frozen=True)
class LongRun:
    """What was held at each look, and what the session had counted in the end."""

    looks: list[Memory]
    captures: int
    replays: int
    fallbacks: int
    plans: int


def run_long(backend: str) -> LongRun:
    """Run all of it in a new process."""
    said = json.loads(run_python("-m", __name__, backend, timeout=TIMEOUT).stdout)
    looks = [Memory(**look) for look in said.pop("looks")]
    return LongRun(looks, **said)


def _main(backend: str) -> None:
    torch.set_num_threads(1)
    looks: list[Memory] = []
    number = 0
    with backbind.capture(backend=backend) as session:
        while len(looks) < LOOKS:
            graph = number // RUNS % GRAPHS
            WAYS[number % len(WAYS)](run_program(graph, length=2 + graph % 5))
            number += 1
            if number % 1000 == 0 and _backwards(session) >= BACKWARDS[backend] * (len(looks) + 1) // LOOKS:
                looks.append(memory())
    stats = session.stats
    print(json.dumps(asdict(LongRun(looks, stats.captures, stats.replays, stats.fallbacks, stats.plans))))


def _backwards(session: backbind.Session) -> int:
    stats = session.stats
    return stats.captures + stats.replays + stats.fallbacks


if __name__ == "__main__":
    _main(sys.argv[1])
