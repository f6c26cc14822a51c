"""What a run found out, whether it did everything or knew from the last run that nothing changed."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from codegen.output import Change

EQUAL = "equal"
NOT_ASKED = "not asked for"
NO_LIBCLANG = "no libclang"


@dataclass(frozen=True)
class Outcome:
    """The outputs, and how the output folder differs from them."""

    torch_version: str
    out: Path
    outputs: tuple[str, ...]
    """Paths below ``out``, in order."""
    changes: list[Change]
    header_check: str
    """``equal``, ``not asked for`` or ``no libclang: why``."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By phase, in order; empty if nothing had to be done."""
    cached: Set[str] = frozenset()
    """Facts that an earlier run had kept."""
    texts: Mapping[str, str] | None = None
    """None: the output folder holds them."""
    notices: tuple[str, ...] = ()
    """What whoever changed the derivatives should know."""

    def text(self, path: str) -> str:
        """One output."""
        if self.texts is not None:
            return self.texts[path]
        return (self.out / path).read_text(encoding="utf-8")

    @cached_property
    def sizes(self) -> list[int]:
        """Bytes of each output."""
        if self.texts is not None:
            return [len(text.encode()) for text in self.texts.values()]
        return [(self.out / path).stat().st_size for path in self.outputs]
