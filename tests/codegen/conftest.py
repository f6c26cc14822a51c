"""What tests of the generator share, made once: facts and model of the installed torch, files of the next
one.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.check import check_entries
from codegen.model.node import Model
from codegen.parse.report import Report
from codegen.parse.yaml_source import parse_entries
from codegen.parse.yaml_tree import decode_source
from codegen.pipeline import Settings, Timings, load_model, render
from codegen.torch_install.cache import Cache
from codegen.torch_install.locate import TorchInstall, locate_torch
from codegen.torch_install.operators import Operators, load_operators
from codegen.torch_install.vocabulary import Vocabulary, load_vocabulary
from tools.regen_support.options import Options
from tools.regen_support.other_torch import unpack_torch

NEXT_TORCH = "2.14.1"
collect_ignore_glob = ["__snapshots__/*"]
"""Accepted excerpts of Python are named after their tests, and are none."""
CASES = Path(__file__).parent / "cases"

Judge = Callable[[bytes, str], Report]


@pytest.fixture(scope="session")
def operators(installed_torch: TorchInstall) -> Operators:
    return load_operators(installed_torch)


@pytest.fixture(scope="session")
def vocabulary(installed_torch: TorchInstall, operators: Operators) -> Vocabulary:
    return load_vocabulary(installed_torch, operators)


@pytest.fixture(scope="session")
def judge(operators: Operators, vocabulary: Vocabulary) -> Judge:
    """Judge the bytes of a derivatives file under a name."""

    def run(content: bytes, name: str) -> Report:
        report = Report()
        source = decode_source(content, name, report)
        if source is not None:
            check_entries(parse_entries(source, report), operators, vocabulary, report)
        return report

    return run


@pytest.fixture(scope="session")
def kept_facts() -> Cache:
    """Facts of a torch, as tools/regen.py keeps them: each is found only if nothing behind it changed."""
    return Cache(Options.cache)


@pytest.fixture(scope="session")
def model(installed_torch: TorchInstall, kept_facts: Cache) -> Model:
    return load_model(installed_torch, Settings(), Timings(), kept_facts)


@pytest.fixture(scope="session")
def texts(model: Model) -> dict[str, str]:
    """Every output for the installed torch, by path."""
    return render(model, Settings(), Timings())


@pytest.fixture(scope="session")
def torch_2_14() -> TorchInstall:
    """What the generator reads of torch 2.14.1, unpacked from its wheel; nothing of it can be imported.

    The wheel is downloaded once. BACKBIND_WHEEL_CACHE names the folder that keeps it; a wheel that lies there
    already is used without the network.
    """
    cache = Path(os.environ.get("BACKBIND_WHEEL_CACHE", Path(__file__).parents[2] / ".cache"))
    cache.mkdir(parents=True, exist_ok=True)
    unpacked = cache / f"torch-{NEXT_TORCH}"
    complete = unpacked / "complete"
    # Workers of one test run would otherwise unpack into each other's files.
    with (cache / f"torch-{NEXT_TORCH}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            unpack_torch(_wheel(cache), unpacked, with_library=True)
            complete.touch()
    return locate_torch(unpacked)


def _wheel(cache: Path) -> Path:
    found = sorted(cache.glob(f"torch-{NEXT_TORCH}-*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache)]
        subprocess.run([*command, f"torch=={NEXT_TORCH}"], check=True)
        found = sorted(cache.glob(f"torch-{NEXT_TORCH}-*.whl"))
    return found[0]
