"""How the linked extension gets into the package."""

import os
from pathlib import Path

import pytest

from tools.build_support.flags import extension_file_name
from tools.build_support.package_links import link_package
from tools.build_support.place import BUILT_FOR, place, record_torch

EXTENSION = extension_file_name()


@pytest.fixture
def built(tmp_path: Path) -> Path:
    path = tmp_path / "built.so"
    path.write_bytes(b"new")
    return path


def test_placed_file_is_the_built_one(tmp_path: Path, built: Path) -> None:
    placed = tmp_path / "package" / "_C.so"
    assert place(built, placed)
    assert placed.samefile(built)
    assert not place(built, placed)
    assert [path.name for path in placed.parent.iterdir()] == ["_C.so"]


def test_equal_content_is_left_alone(tmp_path: Path, built: Path) -> None:
    placed = tmp_path / "_C.so"
    placed.write_bytes(b"new")
    inode = placed.stat().st_ino
    assert not place(built, placed)
    assert placed.stat().st_ino == inode


def test_open_file_keeps_its_content(tmp_path: Path, built: Path) -> None:
    placed = tmp_path / "_C.so"
    placed.write_bytes(b"old")
    with placed.open("rb") as mapped:
        assert place(built, placed)
        assert mapped.read() == b"old"
    assert placed.read_bytes() == b"new"


def test_file_system_without_hard_links(tmp_path: Path, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    placed = tmp_path / "_C.so"
    assert place(built, placed)
    assert placed.read_bytes() == b"new"
    assert not placed.samefile(built)
    assert not place(built, placed)


@pytest.mark.parametrize("earlier", [None, "2.12.0\n", "2.13.0\n"])
def test_torch_of_the_extension_is_recorded(tmp_path: Path, earlier: str | None) -> None:
    record = tmp_path / BUILT_FOR
    if earlier is not None:
        record.write_text(earlier, encoding="utf-8")
    record_torch(tmp_path, "2.13.0")
    assert record.read_text(encoding="utf-8") == "2.13.0\n"


def test_package_of_links(tmp_path: Path) -> None:
    source, target, operators = tmp_path / "backbind", tmp_path / "own" / "backbind", tmp_path / "ops"
    for folder in (source / "codegen", source / "ops", source / "__pycache__", operators, target):
        folder.mkdir(parents=True)
    for name in ("__init__.py", "_C.pyi", EXTENSION, "_operator.py", BUILT_FOR):
        (source / name).touch()
    # What an earlier build left: its extension stays, a link to a part that is gone does not.
    (target / EXTENSION).write_bytes(b"own")
    (target / "gone.py").symlink_to(source / "gone.py")
    for _ in range(2):
        link_package(source, target, operators)
        links = {path.name: path.readlink() for path in target.iterdir() if path.is_symlink()}
        assert links == {
            "__init__.py": source / "__init__.py",
            "_C.pyi": source / "_C.pyi",
            "_operator.py": source / "_operator.py",
            "codegen": source / "codegen",
            "ops": operators,
        }
        assert (target / EXTENSION).read_bytes() == b"own"
