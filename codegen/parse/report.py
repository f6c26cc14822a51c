"""Messages to the people who write derivatives: collected while a file is judged, printed together in file
order.

A user's mistake is a `Diagnostic`. A mistake of ours is an `InternalError`, which looks different and names
the entry that was being processed, so that nobody searches their own file for it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from .span import Span

LINE_WIDTH = 160
"""A longer source line is cut to this many characters around the caret, so that the caret stays below its
place.
"""


class Severity(Enum):
    """Whether a diagnostic stops the run."""

    ERROR = "error"
    NOTICE = "notice"


@dataclass(frozen=True)
class Diagnostic:
    """One message about one place. Lower case, no full stop, names in single quotes."""

    severity: Severity
    span: Span
    message: str
    """What is wrong and what was expected."""
    hint: str | None = None
    """What to write instead; may have several lines."""

    def render(self) -> str:
        """The message as printed: place and message, the source line, a caret under the place, the hint."""
        lines = [escaped(f"{self.span}: {self.severity.value}: {self.message}"), *_excerpt(self.span)]
        if self.hint is not None:
            # A line feed in a hint is ours: names that are quoted in it have none.
            first, *rest = map(escaped, self.hint.split("\n"))
            lines += [f"hint: {first}", *(f"      {line}" for line in rest)]
        return "\n".join(lines)


def escaped(text: str) -> str:
    r"""Text on one line, in which nothing can move a terminal's cursor, colour it, or turn the order of writing.

    >>> print(escaped("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


@dataclass
class Report:
    """Collects diagnostics."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    error_count: int = 0

    def error(self, span: Span, message: str, hint: str | None = None) -> None:
        """Record a mistake that makes the input unusable."""
        self.error_count += 1
        self.diagnostics.append(Diagnostic(Severity.ERROR, span, message, hint))

    def notice(self, span: Span, message: str, hint: str | None = None) -> None:
        """Record something legal that its author may not expect."""
        self.diagnostics.append(Diagnostic(Severity.NOTICE, span, message, hint))

    def drop_notices(self) -> None:
        """Forget the notices, for those who want to see errors only."""
        self.diagnostics = list(self.errors)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(item for item in self.in_order() if item.severity is Severity.ERROR)

    @property
    def notices(self) -> tuple[Diagnostic, ...]:
        return tuple(item for item in self.in_order() if item.severity is Severity.NOTICE)

    @property
    def has_errors(self) -> bool:
        return self.error_count > 0

    def in_order(self) -> list[Diagnostic]:
        """All diagnostics by file and place, files in the order in which they first appear."""
        ranks: dict[int, int] = {}
        for item in self.diagnostics:
            ranks.setdefault(id(item.span.file), len(ranks))
        return sorted(self.diagnostics, key=lambda item: (ranks[id(item.span.file)], item.span.start))

    def render(self) -> str:
        """Every diagnostic and a last line that counts them; empty if there is none."""
        if not self.diagnostics:
            return ""
        return "\n\n".join([*(item.render() for item in self.in_order()), self.count_line()]) + "\n"

    def count_line(self) -> str:
        """For example ``2 errors, 1 notice``."""
        counts = ((len(self.errors), "error"), (len(self.notices), "notice"))
        parts = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
        return ", ".join(parts) or "no errors"


class InternalError(Exception):
    """An exception of the generator itself, with the thing that was being processed."""

    def __init__(self, subject: str, span: Span, cause: BaseException) -> None:
        super().__init__(
            f"internal error in the generator while it processed {escaped(subject)} at {escaped(str(span))}\n"
            f"  {type(cause).__name__}: {escaped(str(cause))}\n"
            "this is a defect of backbind, not of the file; please report it with the entry"
        )


@contextmanager
def processing(subject: str, span: Span) -> Iterator[None]:
    """Turn an exception inside into an `InternalError` that names ``subject``, such as ``entry 'abs'``."""
    try:
        yield
    except InternalError:
        raise
    except Exception as cause:
        raise InternalError(subject, span, cause) from cause


def _excerpt(span: Span) -> tuple[str, ...]:
    """The source line of a span and the line with the caret below it; nothing of a file without text."""
    if not span.file.text:
        return ()
    line = span.file.line_text(span.line)
    first = min(span.column - 1, len(line))
    last = min(max(span.end - span.start, 1) + first, max(len(line), first + 1))
    cut_left = max(0, first - LINE_WIDTH // 2) if len(line) > LINE_WIDTH else 0
    cut_right = min(len(line), cut_left + LINE_WIDTH)
    before = "..." if cut_left else ""
    after = "..." if cut_right < len(line) else ""
    last = max(first + 1, min(last, max(cut_right, first + 1)))
    shown = before + "".join(map(_printable, line[cut_left:cut_right])) + after
    # A tab stays a tab in the padding, or the caret would move with the terminal's tab width.
    padding = " " * len(before) + "".join(map(_blank, line[cut_left:first]))
    marked = sum(_width(character) for character in line[first:last]) or 1
    return shown, padding + "^" + "~" * (marked - 1)


def _printable(character: str) -> str:
    return character if character.isprintable() or character == "\t" else "\N{REPLACEMENT CHARACTER}"


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _blank(character: str) -> str:
    return "\t" if character == "\t" else " " * _width(character)
