"""Every kind of mistake with its whole message: each file under cases/ holds an input and, below it, what is
said.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.parse.report import Report

from ..conftest import CASES, Judge

MARK = b"# expect:\n"
FILES = sorted(path for path in CASES.rglob("*.yaml") if "native" not in path.name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_message(path: Path, judge: Judge) -> None:
    content, mark, expected = path.read_bytes().partition(MARK)
    assert mark, f"{path} has no line '{MARK.decode().strip()}'"
    assert judge(content, path.name).render() == _uncommented(expected.decode())


def _uncommented(text: str) -> str:
    lines = [line.removeprefix("#").removeprefix(" ") for line in text.splitlines()]
    return "" if lines == ["no findings"] else "\n".join(lines) + "\n"


def test_every_case_of_the_public_reports_is_here() -> None:
    names = {path.stem for path in FILES if path.parent == CASES}
    assert names == {"c1", "c2", "c3", "c5", "c6", "c7", "c9", "c13", "c14", "c15"}


def test_errors_of_one_run_are_all_shown_in_file_order(judge: Judge) -> None:
    contents = [path.read_bytes().partition(MARK)[0] for path in FILES if path.parent == CASES]
    report = judge(b"\n".join(contents), "all.yaml")
    lines = [item.span.line for item in report.in_order()]
    assert lines == sorted(lines)
    assert report.count_line() == "6 errors, 2 notices"


def test_clean_file_says_nothing() -> None:
    assert Report().render() == ""
