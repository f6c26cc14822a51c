"""Calls that are almost right return or raise, over all nodes that the oracle's programs reach: none ends its process.

The calls are made with guard pages around the memory of tensors (see near_valid_calls.py and guard_pages.c), so that a
kernel which reads past its tensor is seen even where nothing would come of it. Other seeds, while developing:

    cc -shared -fPIC -O1 -o /tmp/guard.so tests/ops/guard_pages.c -ldl
    LD_PRELOAD=/tmp/guard.so python -m tests.ops.near_valid_calls --guarded --seed 9 --count 5000 --journal /tmp/journal
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.ops.test_wrong_calls import complaint

GUARD_PAGES = Path(__file__).with_name("guard_pages.c")
_COUNT = 1500


def guard_library(folder: Path) -> Path:
    """guard_pages.c as a library that can be preloaded."""
    library = folder / "guard_pages.so"
    compiler = [os.environ.get("CXX", "c++"), "-x", "c", "-O1", "-shared", "-fPIC"]
    subprocess.run([*compiler, "-o", str(library), str(GUARD_PAGES), "-ldl"], check=True)
    return library


@dataclass
class Journal:
    """What a run wrote."""

    calls: list[tuple[int, str]] = field(default_factory=list)
    endings: dict[int, str] = field(default_factory=dict)
    deaths: list[str] = field(default_factory=list)
    """How children ended, each with the call that was made last."""

    @staticmethod
    def read(path: Path) -> Journal:
        journal = Journal()
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if "call" in record:
                journal.calls.append((record["number"], record["call"]))
            elif "ending" in record:
                journal.endings[journal.calls[-1][0]] = record["ending"]
            else:
                last = journal.calls[-1] if journal.calls else (-1, "before any call")
                when = "after" if last[0] in journal.endings else "in"
                journal.deaths.append(f"status {record['died']} {when} {last[0]}: {last[1]}")
        return journal


@pytest.mark.slow
def test_near_valid_calls_return_or_raise(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    options = ["--seed", "1", "--count", str(_COUNT), "--journal", str(path), "--guarded"]
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.ops.near_valid_calls", *options],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "LD_PRELOAD": str(guard_library(tmp_path)),
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "runtime")]),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    journal = Journal.read(path)
    assert not journal.deaths, "\n".join([*journal.deaths, process.stderr[-2000:]])
    complaints = [
        f"{number}: {call}\n    {found}"
        for number, call in journal.calls
        if (found := complaint(call, journal.endings[number]))
    ]
    assert not complaints, "\n".join(complaints)
    assert [number for number, _ in journal.calls] == list(range(_COUNT))
    endings = Counter(ending.partition(":")[0] for ending in journal.endings.values())
    assert min(endings["ValueError"], endings["RuntimeError"], endings["returned"]) > 100


def test_guard_pages_end_a_process_that_reads_past_a_tensor(tmp_path: Path) -> None:
    code = (
        "import ctypes, sys, torch\n"
        "guard, past = int(sys.argv[1]), int(sys.argv[2])\n"
        "ctypes.CDLL(None).backbind_guard_pages(guard)\n"
        "tensor = torch.ones(512, dtype=torch.float64)\n"
        "ctypes.CDLL(None).backbind_guard_pages(0)\n"
        "ctypes.c_double.from_address(tensor.data_ptr() + 8 * past).value\n"
    )
    library = guard_library(tmp_path)
    outcomes = [
        subprocess.run(
            [sys.executable, "-c", code, str(guard), str(past)],
            env={**os.environ, "LD_PRELOAD": str(library)},
            check=False,
        ).returncode
        for guard, past in ((1, 511), (1, 512), (2, 0), (2, -1))
    ]
    assert outcomes == [0, -11, 0, -11]


def test_a_death_is_read_from_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    lines = (
        '{"number": 3, "call": "X()"}',
        '{"died": -11}',
        '{"number": 4, "call": "Y()"}',
        '{"ending": "returned"}',
        '{"died": 1}',
    )
    path.write_text("\n".join(lines))
    assert Journal.read(path).deaths == ["status -11 in 3: X()", "status 1 after 4: Y()"]
