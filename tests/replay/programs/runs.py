"""Runs something as torch does without backbind, and in each of the ways in which backbind may have a hand in it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import backbind
import torch

from tests.replay.programs.observations import Log, log_difference


def run_untouched(run: Callable[[], Log]) -> Log:
    """Run with nobody at the engine's entry, where it stays taken after the first capture of a process."""
    compiled_autograd: Any = torch._C._dynamo.compiled_autograd
    # Unwrapped, because backbind takes the entry again where torch gives it up.
    inspect.unwrap(compiled_autograd.set_autograd_compiler)(None, False)
    return run()


def differences(run: Callable[[], Log]) -> list[str]:
    """In which ways a run differs from torch's: captured, replayed, as a graph, and outside of capture afterwards."""
    backbind.reset()
    expected = run_untouched(run)
    with backbind.capture():
        actual = {"captured": run(), "replayed": run()}
    with backbind.capture(backend="graph"):
        actual |= {"graph": run(), "graph held": run()}
    actual["left to the engine"] = run()
    found = {name: log_difference(expected, log) for name, log in actual.items()}
    return [f"{name}: {difference}" for name, difference in found.items() if difference]
