"""Keeps facts of an installed torch between runs, under a key made from the content that they were read from.

Facts are what does not depend on the file being edited: the operators, the helpers that link, the node
structs. A key holds the contents of every source of a fact and of the code that reads it, so that a kept fact
is never out of date; it is forgotten only to save space. The folder is as trusted as the checkout that it
lies in: entries are pickles.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

_Fact = TypeVar("_Fact")

_KEPT = 4
"""How many entries of one name stay: as many torches as anybody works with at once."""


class Cache:
    """Kept facts in a folder; without a folder nothing is kept."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.hits: set[str] = set()
        """Names of the facts that were found."""

    def fetch(self, name: str, key: str, make: Callable[[], _Fact]) -> _Fact:
        """The kept fact, or what ``make`` gives, which is then kept."""
        found: _Fact | None = self.find(name, key)
        if found is not None:
            return found
        made = make()
        self.keep(name, key, made)
        return made

    def find(self, name: str, key: str) -> Any:
        """The kept fact or None."""
        path = self.path(name, key)
        if path is None:
            return None
        try:
            found = pickle.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except Exception:
            # Cut short, or written by something else under the same name: to be made again.
            return None
        self.hits.add(name)
        return found

    def keep(self, name: str, key: str, fact: object) -> None:
        """Keep a fact for later runs."""
        path = self.path(name, key)
        if path is None:
            return
        keep_file(path, pickle.dumps(fact, pickle.HIGHEST_PROTOCOL))

    def path(self, name: str, key: str) -> Path | None:
        """Where a fact is kept."""
        return None if self.folder is None else self.folder / f"{name}-{key}.pickle"


def keep_file(path: Path, content: bytes) -> None:
    """Write an entry ``<name>-<key>.pickle`` and forget the oldest of its name, where that can be done."""
    name = path.stem.rpartition("-")[0]
    try:
        store(path, content)
        others = sorted(
            path.parent.glob(f"{name}-*.pickle"), key=lambda one: one.stat().st_mtime, reverse=True
        )
        for old in others[_KEPT:]:
            old.unlink(missing_ok=True)
    except OSError:
        return


def store(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def content_key(*parts: str | Path) -> str:
    """A key over texts and over the contents of files; a missing file counts as such.

    The Python version and the name of this package are always part of it, because pickles depend on them.
    """
    digest = hashlib.sha256(f"{sys.version_info[:3]} {__name__}".encode())
    for part in parts:
        content = part.encode() if isinstance(part, str) else _content(part)
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:20]


def python_files(folder: Path) -> tuple[Path, ...]:
    """The Python sources below a folder, in a fixed order."""
    return tuple(sorted(folder.rglob("*.py")))


def own_sources(*names: str) -> Iterable[Path]:
    """Sources of this package: files or folders, from the top of ``codegen``."""
    top = Path(__file__).resolve().parent.parent
    for name in names:
        path = top / name
        yield from python_files(path) if path.is_dir() else (path,)


def _content(path: Path) -> bytes:
    try:
        return b"file" + path.read_bytes()
    except FileNotFoundError:
        return b"missing"
