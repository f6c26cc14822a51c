"""Places in source text: a file, a stretch of it, and text taken from it character by character."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise


@dataclass(frozen=True, eq=False)
class SourceFile:
    """A text and the name by which people know it; two are the same only if they are one object."""

    name: str
    """What messages print, for example ``derivatives.yaml``."""
    text: str

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """The offset at which each line begins; only a line feed ends a line, as editors count."""
        starts = [0]
        position = self.text.find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = self.text.find("\n", position + 1)
        return tuple(starts)

    def line_number(self, offset: int) -> int:
        """The line that holds ``offset``, counted from 1."""
        return bisect_right(self.line_starts, offset)

    def line_text(self, number: int) -> str:
        """Line ``number`` without its line break."""
        start = self.line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : len(self.text) if end < 0 else end].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """The stretch ``start`` to ``end`` (exclusive, offsets in characters) of a file."""

    file: SourceFile
    start: int
    end: int

    @property
    def line(self) -> int:
        """The line of the first character, counted from 1."""
        return self.file.line_number(self.start)

    @property
    def column(self) -> int:
        """The column of the first character, counted from 1."""
        return self.start - self.file.line_starts[self.line - 1] + 1

    @property
    def text(self) -> str:
        return self.file.text[self.start : self.end]

    def __str__(self) -> str:
        return f"{self.file.name}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text that a file holds in some written form, such as a quoted or folded YAML scalar.

    ``'a''b'`` in a file is the text ``a'b``: three characters that stand at three places. Keeping the places
    lets a caret point inside the written form.
    """

    text: str
    span: Span
    """The written form, without the quotes around it."""
    origins: tuple[int, ...] | None = None
    """The file offset of each character of ``text``; None if they follow one another from ``span.start``."""

    def part(self, start: int, end: int) -> Span:
        """The place in the file of ``text[start:end]``; an empty part is the place before ``text[start]``."""
        file, origins = self.span.file, self.origins
        if origins is None:
            return Span(file, self.span.start + start, self.span.start + max(start, end))
        first = origins[start] if start < len(origins) else self.span.end
        if end <= start:
            return Span(file, first, first)
        return Span(file, first, max(first, origins[min(end, len(origins)) - 1]) + 1)

    def pieces(self, separator: str) -> tuple[SourceText, ...]:
        """The text split at ``separator``, each piece without the blanks around it."""
        cuts = [-1, *(i for i, character in enumerate(self.text) if character == separator), len(self.text)]
        return tuple(self._stripped(before + 1, after) for before, after in pairwise(cuts))

    def _stripped(self, start: int, end: int) -> SourceText:
        while start < end and self.text[start].isspace():
            start += 1
        while end > start and self.text[end - 1].isspace():
            end -= 1
        origins = None if self.origins is None else self.origins[start:end]
        return SourceText(self.text[start:end], self.part(start, end), origins)
