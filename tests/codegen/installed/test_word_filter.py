"""The stand-in for ``re`` finds exactly what ``re`` finds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.installed.word_filter import WordFilteredRe, necessary_word

filtered = WordFilteredRe()

PIECES = (
    "self",
    "x",
    "_y2",
    r"\.",
    r"\(",
    r"\w+",
    r"\d",
    "(-?\\w+)",
    "(^|\\W)",
    "($|\\W)",
    "a?",
    "b*",
    "c{2}",
    "d{0,1}",
)
MORE_PIECES = (
    "e+",
    "[fg]",
    "[^h]",
    "i|j",
    "(k|l)",
    "(?:mn)",
    "(?!o)",
    r"\bp",
    ".",
    " ",
    "->",
    "::",
    "^",
    "$",
    "(q)?",
    r"\\",
)

patterns = st.lists(st.sampled_from(PIECES + MORE_PIECES), min_size=1, max_size=6).map("".join)
texts = st.lists(
    st.sampled_from(
        (
            "self",
            "x",
            "_y2",
            ".",
            "(",
            ")",
            "1",
            " ",
            "a",
            "cc",
            "d",
            "e",
            "f",
            "k",
            "mn",
            "p",
            "q",
            "->",
            "\\",
        )
    ),
    max_size=8,
).map("".join)


def compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


@given(patterns.filter(compiles), texts)
def test_it_finds_what_re_finds(pattern: str, text: str) -> None:
    wanted, found = re.search(pattern, text), filtered.search(pattern, text)
    assert (wanted and wanted.span()) == (found and found.span())
    assert filtered.findall(pattern, text) == re.findall(pattern, text)
    assert filtered.sub(pattern, "<>", text) == re.sub(pattern, "<>", text)


@pytest.mark.parametrize(
    "pattern, word",
    [
        (r"self.sym_sizes\(\)", "sym_sizes"),
        (r"to_args_sizes\(tensors\)", "to_args_sizes"),
        (r"(^|\W)grad($|\W)", "grad"),
        (r"abc?", "ab"),
        (r"abc{0,2}de", "ab"),
        (r"ab+", "ab"),
        (r"\bword", "word"),
        (r"(ab)", ""),
        (r"a|b", ""),
        (r"[ab]c", ""),
        (r"(?i)word", ""),
        ("", ""),
    ],
)
def test_necessary_word(pattern: str, word: str) -> None:
    assert necessary_word(pattern) == word


def test_the_rest_of_re_is_there() -> None:
    assert filtered.escape("a.b") == re.escape("a.b")
    assert filtered.compile("a").search("ba") is not None
    assert filtered.sub(re.compile("A"), "b", "a") == "a"


@pytest.mark.parametrize("pattern, flags", [("AB", re.IGNORECASE), ("a b", re.VERBOSE)])
def test_flags_are_heeded(pattern: str, flags: int) -> None:
    assert filtered.search(pattern, "xab", flags) is not None
    assert filtered.findall(pattern, "xab", flags) == ["ab"]
    assert filtered.sub(pattern, "-", "xabab", 1, flags) == "x-ab"
