"""The demonstration runs and finds equal bits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch
from backbind.demo.training import train
from sklearn.datasets import load_digits

ROOT = Path(__file__).resolve().parents[2]


def test_every_step_equals_eager() -> None:
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    reports = list(train(images, torch.tensor(digits.target), steps=3))
    assert [report.equal_bits for report in reports] == [True] * 3
    assert [report.largest_difference for report in reports] == [0.0] * 3
    assert all(report.nodes == report.inline + report.delegate for report in reports)


def test_the_command_ends_well() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "backbind.demo", "--steps", "2"],
        cwd=ROOT / "runtime",
        env=os.environ | {"PYTHONPATH": str(ROOT / "runtime")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[-2:] == [
        "a traced graph pickled, loaded and run again: equal bits",
        "30 gradients compared: all equal eager's bit for bit",
    ]
