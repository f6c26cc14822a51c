"""The demonstration runs, compares what it says it compares, and refuses what it cannot do in words."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import backbind
import pytest
import torch
from backbind.demo import __main__ as demo
from backbind.demo.bits import equal_bits
from backbind.demo.graph import call_node, trace_backwards
from backbind.demo.loop import same_weights, train_both, twins
from backbind.demo.network import DigitNetwork

ROOT = Path(__file__).resolve().parents[2]


def batches(count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    for size in range(3, 3 + count):
        yield torch.randn(size, 1, 8, 8, generator=generator), torch.arange(size) % 10


def test_both_sides_of_training_are_equal() -> None:
    eager, captured = twins()
    context = backbind.capture()
    pairs = list(train_both(eager, captured, batches(4), context))
    assert [pair.equal_bits for pair in pairs] == [True] * 4
    assert same_weights(eager, captured)
    assert (context.session.stats.captures, context.session.stats.replays) == (1, 3)
    parameters = [name for name, _ in eager.network.named_parameters()]
    assert eager.hook_calls == captured.hook_calls
    assert len(eager.hook_calls) == 4 * (len(parameters) + 5)
    assert set(parameters) < set(eager.hook_calls)


def test_a_difference_is_seen() -> None:
    eager, captured = twins()
    with torch.no_grad():
        captured.network.positions.weight[0, 0] += 1e-3
    pairs = list(train_both(eager, captured, batches(2), backbind.capture()))
    assert [pair.equal_bits for pair in pairs] == [False] * 2
    assert not same_weights(eager, captured)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")]), True),
        (torch.tensor([0.0]), torch.tensor([-0.0]), False),
        (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64), False),
        (torch.zeros(2, 3), torch.zeros(3, 2), False),
        (torch.arange(6.0).reshape(2, 3).t(), torch.arange(6.0).reshape(2, 3).t().contiguous(), True),
        (torch.tensor(2.0), torch.tensor(2.0), True),
        (torch.zeros(0), torch.zeros(0), True),
        (None, None, True),
        (None, torch.zeros(1), False),
    ],
)
def test_what_counts_as_equal_bits(one: torch.Tensor | None, other: torch.Tensor | None, equal: bool) -> None:
    assert equal_bits(one, other) is equal


def test_operators_and_graph_equal_eager() -> None:
    network = DigitNetwork()
    images, labels = next(batches(1))
    assert call_node(torch.nn.functional.cross_entropy(network(images), labels)).equal_bits
    traced = trace_backwards(network, batches(2))
    assert (traced.equal_bits, traced.pickled_equal_bits, traced.count) == (True, True, 2)
    assert traced.gradients == 2 * len(list(network.parameters()))


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "backbind.demo", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT / "runtime")} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_ends_well() -> None:
    finished = run("--steps", "3")
    assert (finished.returncode, finished.stderr) == (0, "")
    lines = finished.stdout.splitlines()
    assert lines[-1] == "everything equals eager bit for bit"
    assert "   losses and gradients: equal bits in 3 of 3 steps" in lines
    assert "   weights after them: equal bits" in lines
    assert "   hooks: 60 calls by eager, 60 captured, in the same order" in lines
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("steps", ["0", "1", "-3", "2.5", "many", "", "\u00b2"])
def test_steps_that_compare_nothing_are_refused(steps: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        demo.main([f"--steps={steps}"])
    assert ended.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines()[-1] == (
        f"python -m backbind.demo: error: argument --steps: {steps!r} is not a number of training steps; "
        "expected at least 2"
    )


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sklearn" else find(name))
    assert demo.main([]) == 2
    assert capsys.readouterr().err == (
        "python -m backbind.demo: the images come with scikit-learn, which is not installed; "
        f"install it: {sys.executable} -m pip install scikit-learn\n"
    )
