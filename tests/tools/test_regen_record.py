"""What a run with nothing to do relies on: every change of an input or output shows in the record."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.regen_support.record import Record, load_record, make_record

INPUTS = ("a.yaml", "b.h")


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """A record over two inputs, a folder of sources, a library and two outputs, all of them old."""
    for path in (
        *INPUTS,
        "lib.so",
        "sources/one.py",
        "sources/deep/two.py",
        "sources/notes.txt",
        "out/x",
        "out/y/z",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
        os.utime(tmp_path / path, (1000, 1000))
    return make_record(
        {"mode": "auto"},
        "2.13.0",
        "equal",
        [tmp_path / name for name in INPUTS],
        [tmp_path / "lib.so"],
        {str(tmp_path / "sources"): "*.py"},
        tmp_path / "out",
        ["x", "y/z"],
    )


def rewrite(path: Path) -> None:
    """Other text of the same length at another time."""
    path.write_text(path.read_text()[::-1])


def grow(path: Path) -> None:
    path.write_text(path.read_text() + "!")


def remove(path: Path) -> None:
    path.unlink()


def touch(path: Path) -> None:
    os.utime(path)


@pytest.mark.parametrize("change", [rewrite, grow, remove])
@pytest.mark.parametrize("name", [*INPUTS, "lib.so", "sources/one.py", "sources/deep/two.py"])
def test_a_changed_input_is_named(
    record: Record, tmp_path: Path, name: str, change: Callable[[Path], None]
) -> None:
    assert record.changed_inputs() == []
    change(tmp_path / name)
    assert record.changed_inputs() == [str(tmp_path / name)]


@pytest.mark.parametrize("name", [*INPUTS, "sources/one.py"])
def test_a_new_time_alone_is_no_change(record: Record, tmp_path: Path, name: str) -> None:
    touch(tmp_path / name)
    assert record.changed_inputs() == []


def test_a_library_is_known_by_size_and_time(record: Record, tmp_path: Path) -> None:
    touch(tmp_path / "lib.so")
    assert record.changed_inputs() == [str(tmp_path / "lib.so")]


@pytest.mark.parametrize(
    "name, counts",
    [("sources/three.py", True), ("sources/deep/er/four.py", True), ("sources/three.txt", False)],
)
def test_a_new_source_counts_if_it_fits_the_pattern(
    record: Record, tmp_path: Path, name: str, counts: bool
) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    assert record.changed_inputs() == ([str(tmp_path / name)] if counts else [])


def test_what_python_compiles_is_no_source(record: Record, tmp_path: Path) -> None:
    (tmp_path / "sources" / "__pycache__").mkdir()
    (tmp_path / "sources" / "__pycache__" / "one.py").touch()
    assert record.changed_inputs() == []


@pytest.mark.parametrize("name", ["x", "y/z"])
@pytest.mark.parametrize("change, current", [(rewrite, False), (grow, False), (remove, False), (touch, True)])
def test_outputs(
    record: Record, tmp_path: Path, name: str, change: Callable[[Path], None], current: bool
) -> None:
    assert record.outputs_are_current(["y/z", "x"])
    change(tmp_path / "out" / name)
    assert record.outputs_are_current(["x", "y/z"]) is current


def test_outputs_are_these_and_no_other(record: Record) -> None:
    assert not record.outputs_are_current(["x"])
    assert not record.outputs_are_current(["x", "y/z", "more"])


def test_a_change_right_after_the_run_shows_even_if_the_time_does_not(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_text("one")
    record = make_record({}, "2.13.0", "equal", [path], [], {}, tmp_path, [])
    before = path.stat()
    path.write_text("two")
    # The clock of a file system may stand still between two writes.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert before.st_mtime_ns > time.time_ns() - 2_000_000_000
    assert record.changed_inputs() == [str(path)]


def test_it_comes_back_as_it_was(record: Record, tmp_path: Path) -> None:
    record.save(tmp_path / "new" / "record.json")
    assert load_record(tmp_path / "new" / "record.json") == record
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["record.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": 0}', '{"format": 1}', '{"format": 1, "inputs": 3}']
)
def test_what_cannot_be_read_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "record.json").write_text(text)
    assert load_record(tmp_path / "record.json") is None
    assert load_record(tmp_path / "none.json") is None


def test_where_it_cannot_be_saved_nothing_happens(record: Record, tmp_path: Path) -> None:
    record.save(tmp_path / "a.yaml" / "record.json")
    assert record.changed_inputs() == []
