"""Brings a folder to what the generator made: only what changed is written, what no rule makes any more goes.

A file whose bytes are right is not touched, so that a build tool that looks at times compiles nothing anew.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from pathlib import Path

from .emit.file_header import copy_fingerprint, is_generated
from .torch_install.cache import store

MANIFEST = "manifest.json"
"""Every run makes it, so it stands for all outputs in a depfile."""

_IGNORED_FOLDERS = frozenset({"__pycache__"})
_DIFF_CONTEXT = 1


class Kind(Enum):
    """How a file differs from what it should be."""

    MISSING = "missing"
    STALE = "stale"
    SUPERFLUOUS = "superfluous"
    """No rule makes it, but it says that the generator made it."""


@dataclass(frozen=True)
class Change:
    """One file that differs. Paths are below the output folder, with slashes."""

    path: str
    kind: Kind
    old: str
    """The text in the folder; empty if there is none."""
    new: str
    """The text as it should be; empty if the file should go."""


def find_changes(folder: Path, texts: Mapping[str, str]) -> list[Change]:
    """Every file below ``folder`` that is not what ``texts`` say, by path."""
    changes = []
    for path, text in texts.items():
        try:
            content = (folder / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            changes.append(Change(path, Kind.MISSING, "", text))
            continue
        if content != text.encode():
            changes.append(Change(path, Kind.STALE, content.decode(errors="replace"), text))
    for path in sorted(set(list_files(folder)) - texts.keys()):
        old = (folder / path).read_bytes().decode(errors="replace")
        if is_generated(old):
            changes.append(Change(path, Kind.SUPERFLUOUS, old, ""))
    return sorted(changes, key=lambda change: change.path)


def list_files(folder: Path) -> list[str]:
    """Every file below ``folder`` except what Python compiles."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not _IGNORED_FOLDERS.intersection(path.relative_to(folder).parts)
    )


def apply_changes(folder: Path, changes: Iterable[Change]) -> None:
    """Write, replace and delete as ``changes`` say."""
    for change in changes:
        path = folder / change.path
        if change.kind is Kind.SUPERFLUOUS:
            path.unlink()
            if path.parent != folder and not any(path.parent.iterdir()):
                path.parent.rmdir()
        else:
            store(path, change.new.encode())


def short_diff(change: Change, most_lines: int = 20) -> str:
    """A unified diff of at most ``most_lines`` lines, and how much was left out."""
    lines = list(_diff_lines(change))
    shown = [line if len(line) <= 160 else f"{line[:157]}..." for line in islice(lines, most_lines)]
    if len(lines) > most_lines:
        shown.append(f"... {len(lines) - most_lines} more lines of this diff")
    return "\n".join(shown)


def _diff_lines(change: Change) -> Iterable[str]:
    old, new = _without_fingerprint(change.old, change.new)
    before = "/dev/null" if change.kind is Kind.MISSING else change.path
    after = "/dev/null" if change.kind is Kind.SUPERFLUOUS else change.path
    if not old or not new:
        sign, lines = ("+", new) if new else ("-", old)
        return [f"--- {before}", f"+++ {after}", *(f"{sign}{line}" for line in lines)]
    return difflib.unified_diff(old, new, before, after, lineterm="", n=_DIFF_CONTEXT)


def _without_fingerprint(old: str, new: str) -> tuple[list[str], list[str]]:
    """Both texts as lines; the headers' fingerprints are made equal if anything else differs."""
    alike = copy_fingerprint(new, old)
    return (old if alike == new else alike).splitlines(), new.splitlines()


def depfile(target: str, inputs: Sequence[str]) -> str:
    r"""A rule of make with ``target`` and the files that it was made from, as ninja's ``depfile`` wants it.

    >>> print(depfile("out/manifest.json", ["a b.yaml", "c$.h"]), end="")
    out/manifest.json: \
      a\ b.yaml \
      c$$.h
    """
    return " \\\n  ".join([f"{_escape(target)}:", *map(_escape, inputs)]) + "\n"


def _escape(path: str) -> str:
    for character, written in (("$", "$$"), (" ", "\\ "), ("#", "\\#")):
        path = path.replace(character, written)
    return path
