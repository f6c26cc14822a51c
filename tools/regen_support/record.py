"""What the last run read and wrote, so that a run with nothing to do can end before anything is imported.

A file counts as unchanged if its size and time are; if only the time differs (a checkout, a copy), its
content decides.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_FORMAT = 1
_RACY_NS = 2_000_000_000
"""A file written this shortly before the record could be written again without another time to show it."""


class FileFacts(NamedTuple):
    """One file as it was."""

    size: int
    time_ns: int
    content: str
    """Hash of the content; empty for a library, whose size and time must do."""


@dataclass(frozen=True)
class Record:
    """One finished run."""

    settings: Mapping[str, Any]
    """What was asked of it, as far as it shows in the output."""
    torch_version: str
    header_check: str
    """``equal``, ``not asked for`` or ``no libclang: ...``."""
    inputs: Mapping[str, FileFacts]
    folders: Mapping[str, str]
    """Folders of which every file of a pattern is an input."""
    out: str
    outputs: Mapping[str, FileFacts]
    """By path below ``out``."""
    written_ns: int

    def changed_inputs(self) -> list[str]:
        """Inputs that changed, are gone or are new, in order."""
        found = set(files_below(self.folders))
        gone_or_changed = (path for path, facts in self.inputs.items() if not self._same(Path(path), facts))
        return sorted({*gone_or_changed, *(str(path) for path in found if str(path) not in self.inputs)})

    def outputs_are_current(self, names: Iterable[str]) -> bool:
        """Whether every output is as written, and ``names``, the files that are there, hold no other."""
        if set(names) != self.outputs.keys():
            return False
        return all(self._same(Path(self.out, path), facts) for path, facts in self.outputs.items())

    def _same(self, path: Path, facts: FileFacts) -> bool:
        try:
            now = path.stat()
        except OSError:
            return False
        if now.st_size != facts.size:
            return False
        if now.st_mtime_ns == facts.time_ns and now.st_mtime_ns < self.written_ns - _RACY_NS:
            return True
        return _content(path) == facts.content if facts.content else now.st_mtime_ns == facts.time_ns

    def save(self, path: Path) -> None:
        """Write it; where that cannot be done, the next run finds none."""
        text = json.dumps({"format": _FORMAT, **vars(self)})
        partial = path.with_suffix(".partial")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
        except OSError:
            return


def make_record(
    settings: Mapping[str, Any],
    torch_version: str,
    header_check: str,
    inputs: Iterable[Path],
    libraries: Iterable[Path],
    folders: Mapping[str, str],
    out: Path,
    outputs: Iterable[str],
) -> Record:
    """The record of a run that has just ended."""
    files = sorted({*inputs, *files_below(folders)})
    facts = {str(path): file_facts(path) for path in files if path.is_file()}
    facts.update({str(path): file_facts(path, with_content=False) for path in libraries if path.is_file()})
    written = {path: file_facts(out / path) for path in outputs}
    return Record(settings, torch_version, header_check, facts, folders, str(out), written, time.time_ns())


def load_record(path: Path) -> Record | None:
    """The record in a file, or None if there is none that can be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("format") != _FORMAT:
            return None
        for name in ("inputs", "outputs"):
            data[name] = {path: FileFacts(*facts) for path, facts in data[name].items()}
        return Record(**data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def file_facts(path: Path, with_content: bool = True) -> FileFacts:
    """A file as it is now."""
    now = path.stat()
    return FileFacts(now.st_size, now.st_mtime_ns, _content(path) if with_content else "")


def files_below(folders: Mapping[str, str]) -> Iterator[Path]:
    """Every file of the folders' patterns."""
    for folder, pattern in folders.items():
        for path in Path(folder).rglob(pattern):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
