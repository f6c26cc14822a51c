"""Where a backward's tensors lie: what is not on the CPU is left to the engine before anything is done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import backbind
import pytest
import torch

from tests.compiled import compile_library, folder_of_run
from tests.processes import run_python
from tests.replay.differential import Run, assert_same_as_eager

SOURCES = Path(__file__).with_name("fake_device")

LEFT = {"captures": 0, "plans": 0, "looked up": False, "fallbacks": {"tensors on an accelerator": 1}}
CAPTURED = {"captures": 1, "plans": 1, "looked up": True, "fallbacks": {}}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["accelerator", "other device"])
def test_a_backward_on_another_device_is_the_engines_from_the_start(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = folder_of_run(tmp_path_factory) / "fake_device"
    library = compile_library("backbind_fake_device", [SOURCES / "device.cpp"], folder)
    # A process cannot lose a device again.
    done = subprocess.run(
        [sys.executable, str(SOURCES / "program.py"), str(library), kind], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    assert seen["accelerator"] == ("fake" if kind == "accelerator" else None)
    assert seen["eager"]["cpu"] == [[2.0, 2.0, 2.0], None]
    for name, outcome in seen["captured"].items():
        assert outcome.pop("result") == seen["eager"][name]
        assert outcome == (CAPTURED if name == "cpu" else LEFT), name


LAZY = """
import torch
import torch._lazy.ts_backend
import backbind

def captured(device):
    x = torch.ones(3, requires_grad=True, device=device)
    with backbind.capture() as session:
        x.exp().sum().backward()
    assert torch.equal(x.grad.cpu(), torch.ones(3).exp())
    return [session.stats.captures, session.stats.replays, dict(session.stats.fallback_reasons)]

before = captured("cpu")
torch._lazy.ts_backend.init()
print([before, captured("lazy"), captured("cpu")])
"""


def test_a_device_that_is_started_later_is_seen() -> None:
    """torch always knows the lazy device, which has none until its backend is started: in a process of its own."""
    done = run_python("-W", "ignore", "-c", LAZY)
    expected = [[1, 0, {}], [0, 0, {"tensors on an accelerator": 1}], [0, 1, {}]]
    assert done.stdout == f"{expected}\n"


def test_tensors_without_memory_are_run_as_those_of_the_cpu_are() -> None:
    def scenario(run: Run) -> object:
        x = torch.ones(3, 2, device="meta", requires_grad=True)
        with run.backward():
            (x.exp() @ x.mT).sum().backward()
        return x.grad

    assert_same_as_eager(scenario)
    with backbind.capture() as session:
        torch.ones(3, device="meta", requires_grad=True).exp().sum().backward()
    assert (session.stats.captures, session.stats.fallbacks) == (1, 0)
