"""A stand-in for the module ``re`` that skips searches which cannot find anything.

torchgen looks for thousands of patterns, nearly each in one short formula, where compiling the pattern costs
a hundred times the search. Most patterns contain a word, and a formula without that word cannot match.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

_Pattern = str | re.Pattern[str]
_Replacement = str | Callable[[re.Match[str]], str]


class WordFilteredRe:
    """Has everything of ``re``; the functions that search one text ask first whether they could succeed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(re, name)

    def search(self, pattern: _Pattern, text: str, flags: int = 0) -> re.Match[str] | None:
        return re.search(pattern, text, flags) if _can_match(pattern, text, flags) else None

    def findall(self, pattern: _Pattern, text: str, flags: int = 0) -> list[Any]:
        return re.findall(pattern, text, flags) if _can_match(pattern, text, flags) else []

    def sub(
        self, pattern: _Pattern, replacement: _Replacement, text: str, count: int = 0, flags: int = 0
    ) -> str:
        if not _can_match(pattern, text, flags):
            return text
        return re.sub(pattern, replacement, text, count=count, flags=flags)


def _can_match(pattern: _Pattern, text: str, flags: int) -> bool:
    # A flag may give words another meaning: other letters match them, or blanks count for nothing.
    return bool(flags) or not isinstance(pattern, str) or necessary_word(pattern) in text


@cache
def necessary_word(pattern: str) -> str:
    r"""The longest word that is part of every match of ``pattern``; empty if there is none, or if in doubt.

    >>> necessary_word(r"(^|\W)self($|\W)"), necessary_word(r"self.sym_size\((-?\w+)\)")
    ('self', 'sym_size')
    >>> necessary_word(r"cat|dog"), necessary_word(r"colou?r"), necessary_word(r"(?i)cat")
    ('', 'colo', '')
    """
    words = [""]
    depth = 0
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if (character in "[|" and depth == 0) or pattern.startswith("(?", position):
            return ""
        if character == "\\":
            position += 1
            words.append("")
        elif character in "()":
            depth += 1 if character == "(" else -1
            words.append("")
        elif depth == 0 and character in "?*{":
            # What stands before may be left out.
            words[-1] = words[-1][:-1]
            words.append("")
            position = pattern.find("}", position) if character == "{" else position
        elif depth == 0 and (character.isalnum() or character == "_"):
            words[-1] += character
        else:
            words.append("")
        position += 1
    return max(words, key=len)
