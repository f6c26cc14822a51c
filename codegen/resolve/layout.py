"""The lines of the YAML that a resolved formula stands on.

A compiler that is told on which line a formula begins counts lines from there. So what is compiled has its line breaks
where the YAML has them, whatever YAML makes of these: in a folded scalar a formula has a blank there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..parse.lexer import TokenKind, tokenize
from .records import ResolvedFormula


class Layout(NamedTuple):
    """A formula line by line."""

    first_line: int
    """The line of the YAML with its first token."""
    lines: tuple[str, ...]
    """What is compiled for this line and each one after it; blanks around and between its words are single."""


def layout_of(formula: ResolvedFormula) -> Layout:
    """The lines of a formula."""
    source = formula.written.source
    end = len(source.text)
    start = end - len(source.text.lstrip())
    first = source.part(start, start + 1).line
    if source.part(end - 1, end).line == first and "//" not in source.text:
        return Layout(first, (_single_blanks(formula.text),))
    lines: list[list[str]] = [[]]
    for offset, text in _pieces(formula):
        if offset is not None:
            line = source.part(offset, offset + 1).line
            while len(lines) <= line - first:
                lines.append([])
        lines[-1].append(text)
    return Layout(first, tuple(_single_blanks("".join(pieces)) for pieces in lines))


def _pieces(formula: ResolvedFormula) -> Iterator[tuple[int | None, str]]:
    """The tokens of what is compiled, each with its place in what is written, and what stands between them.

    A line may begin with a token and nowhere else: not in a string, nor in a comment.
    """
    text, position = formula.written.text, 0
    edits = {edit.start: edit for edit in formula.edits}
    for token in tokenize(text):
        if token.start < position:
            # Inside an edit.
            continue
        # A comment up to the end of a line would swallow what follows where that line is joined with the next.
        yield None, re.sub(r"//[^\n]*", "", text[position : token.start])
        if token.kind is TokenKind.END:
            return
        edit = edits.get(token.start)
        yield token.start, token.text if edit is None else edit.text
        position = token.end if edit is None else edit.end


def _single_blanks(text: str) -> str:
    return " ".join(text.split())
