"""Thousands of wrong calls, over all operators, end in errors written for people: no crash and no internal assertion.

The calls run in processes of their own (see wrong_calls.py), so that one that ends its process is seen and named.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

_ALLOWED = ("TypeError", "ValueError", "RuntimeError", "IndexError")
"""What a call may raise; the last two are torch's own words about values that fit no formula."""


def run_calls(seed: int, count: int, journal: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.ops.wrong_calls", "--seed", str(seed), "--count", str(count)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "runtime")]),
    }
    return subprocess.run(
        [*command, "--journal", str(journal), *options],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def read_journal(path: Path) -> list[tuple[str, str]]:
    """Each call and how it ended; the ending of a call that never ended is empty."""
    calls: list[tuple[str, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "call" in record:
            calls.append((record["call"], ""))
        else:
            calls[-1] = (calls[-1][0], record["ending"])
    return calls


def complaint(call: str, ending: str, through_dispatcher: bool = False) -> str | None:
    """What is wrong with how a call ended."""
    if not ending:
        return "the process ended in it"
    error = ending.partition(":")[0]
    if error in ("AssertionError", "ZeroDivisionError") and "meta" in call:
        return None  # torch's shape functions for meta tensors are written in Python, and end like this
    if ending == "OverflowError: int too big to convert" and through_dispatcher:
        return None  # said by torch's reading of arguments, before an operator is called
    if ending != "returned" and error not in _ALLOWED:
        return ending
    if "INTERNAL ASSERT" in ending or "report a bug" in ending:
        return ending
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "options"), [(1, ()), (2, ()), (3, ("--dispatcher",)), (4, ("--dispatcher",))], ids=str
)
def test_wrong_calls_end_in_errors(seed: int, options: tuple[str, ...], tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    process = run_calls(seed, 1000, journal, *options)
    calls = read_journal(journal)
    dispatcher = "--dispatcher" in options
    complaints = [
        f"{call}\n    {found}" for call, ending in calls if (found := complaint(call, ending, dispatcher))
    ]
    assert not complaints, "\n".join([*complaints, process.stderr[-2000:]])
    assert process.returncode == 0, process.stderr[-2000:]
    assert len(calls) == 1000
    endings = Counter(ending.partition(":")[0] for _, ending in calls)
    # Our own checks are reached, and so are torch's; and some changed values do no harm.
    assert min(endings["ValueError"], endings["RuntimeError"], endings["returned"]) > 50


def test_a_crash_would_be_seen(tmp_path: Path) -> None:
    """The journal names a call before it is made."""
    journal = tmp_path / "journal.jsonl"
    journal.write_text('{"number": 0, "call": "X()"}\n{"ending": "returned"}\n{"number": 1, "call": "Y()"}\n')
    assert [complaint(*call) for call in read_journal(journal)] == [None, "the process ended in it"]


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("returned", None),
        ("ValueError: x", None),
        ("RuntimeError: a INTERNAL ASSERT FAILED at b", "RuntimeError: a INTERNAL ASSERT FAILED at b"),
        ("SystemError: y", "SystemError: y"),
        ("AssertionError: z", "AssertionError: z"),
    ],
)
def test_endings_that_are_not_allowed_are_complained_about(ending: str, expected: str | None) -> None:
    assert complaint("X()", ending) == expected
