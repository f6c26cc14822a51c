"""Gradients of every operator of op_db are eager's under capture: when captured, when replayed and as a graph."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice

import backbind
import pytest
import torch
from torch.utils._pytree import tree_leaves

from tests.oracle.graph_walk import reachable_nodes, tensors_with_history
from tests.oracle.opinfo_programs import dense_programs
from tests.oracle.outcome import SEED
from tests.oracle.programs import Forward, Program, parameters
from tests.replay.programs.gradient_ways import WAYS, Way, into_leaves, run_way
from tests.replay.programs.observations import log_difference
from tests.replay.programs.runs import run_untouched
from tests.replay.programs.slow_paths import unexpected_reasons

PROGRAMS = dense_programs()
FIRST_DTYPE = list({program.name.rpartition("-")[0]: program for program in reversed(PROGRAMS)}.values())

LARGE = 2**18
"""Elements of a sample. Size leads to no other path through a replay."""

EAGER_TRIES = 4
"""How often eager may run to disagree with itself."""


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """How many samples were compared, in each way, and how many not and why."""
    counts: Counter[str] = Counter()
    yield counts
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line("\n" + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))


@pytest.mark.slow
@parameters(PROGRAMS)
def test_gradients_are_those_of_eager(program: Program, tally: Counter[str]) -> None:
    check(program, tally)


@parameters(FIRST_DTYPE)
def test_gradients_are_those_of_eager_in_the_first_sample(program: Program, tally: Counter[str]) -> None:
    check(program, tally, limit=1)


def check(program: Program, tally: Counter[str], limit: int | None = None) -> None:
    torch.manual_seed(SEED)
    found: list[str] = []
    with warnings.catch_warnings():
        # What a forward warns of is not what is tested here.
        warnings.simplefilter("ignore")
        samples = list(islice(program.samples(), limit))
        for number, sample in enumerate(samples):
            for way in ways_for(number, sample.forward):
                differences = compare(sample.forward, way, tally)
                if differences is None:
                    break
                found += [f"sample {number}, {way.__name__}, {what}" for what in differences]
    assert not found, f"{len(found)} disagreements, the first ones:\n" + "\n".join(found[:10])


def ways_for(number: int, forward: Forward) -> tuple[Way, ...]:
    """All ways for the first sample, and each further sample in one, in turn.

    Samples of so many elements that their kernels alone take seconds are taken in the first way.
    """
    assert isinstance(forward, partial)
    tensors = [one for one in tree_leaves((forward.args, forward.keywords)) if isinstance(one, torch.Tensor)]
    if sum(one.numel() for one in tensors if not one.is_nested) >= LARGE:
        return WAYS[:1]
    return WAYS if number == 0 else (WAYS[number % len(WAYS)],)


def compare(forward: Forward, way: Way, tally: Counter[str]) -> list[str] | None:
    """In which ways the captured run, the replayed one and that of a graph differ from eager; None if there is no
    backward."""
    backbind.reset()
    expected = run_untouched(partial(run_way, way, forward))
    if not expected.events:
        tally["samples without a backward"] += 1
        return None
    with backbind.capture() as session:
        captured = run_way(way, forward)
        captures = session.stats.captures
        replayed = run_way(way, forward)
    with backbind.capture(backend="graph"):
        graph = run_way(way, forward)
    differences = {
        "captured": log_difference(expected, captured),
        "replayed": log_difference(expected, replayed),
        "graph": log_difference(expected, graph),
    }
    if any(differences.values()) and any(
        log_difference(expected, run_untouched(partial(run_way, way, forward))) for _ in range(EAGER_TRIES)
    ):
        tally["left out, since eager disagrees with itself"] += 1
        return []
    tally[f"compared {way.__name__}"] += 1
    found = [f"{run}: {difference}" for run, difference in differences.items() if difference]
    stats = session.stats
    if (stats.captures, stats.replays, stats.fallbacks) != (captures, captures, 0):
        found.append(f"after {captures} captures the second run was no replay: {stats}")
    if way is into_leaves:
        found += unexpected_reasons(stats.slow_path_reasons, is_dense_and_real=is_dense_and_real(forward))
    return found


def is_dense_and_real(forward: Forward) -> bool:
    """Whether all that goes in, comes out and lies between is what formulas take."""
    assert isinstance(forward, partial)
    torch.manual_seed(SEED)
    results = forward()
    involved = (*tree_leaves((forward.args, forward.keywords)), *tree_leaves(results))
    tensors = [one for one in involved if isinstance(one, torch.Tensor)]
    nodes = reachable_nodes(one.grad_fn for one in tensors_with_history(results) if one.grad_fn is not None)
    between = [metadata for node in nodes for metadata in node._input_metadata]
    return not (
        any(one.is_complex() or one.layout != torch.strided or one.is_nested for one in tensors)
        or any(one.dtype.is_complex or one.is_nested_tensor for one in between)
    )
