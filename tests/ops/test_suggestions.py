"""Suggestions of the compiled part, by the rule of the generator's: codegen/parse/nearest.py is the reference."""

from __future__ import annotations

import string
from types import ModuleType
from typing import Any

import backbind
import pytest
from backbind import _C
from hypothesis import assume, given
from hypothesis import strategies as st

from codegen.parse.nearest import nearest_name
from tests.codegen.parse.test_nearest import NAMES, SLIPS

OPERATORS = [operator.name for operator in backbind.ops]  # type: ignore[attr-defined]
ARGUMENTS = sorted({one.name for operator in OPERATORS for one in backbind.ops.get(operator).saved})
LETTERS = string.ascii_letters + string.digits + "_:"


@st.composite
def nearly(draw: st.DrawFn, names: list[str]) -> str:
    """A name with up to four slips, which is sometimes none any more."""
    name = draw(st.sampled_from(names))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(name)))
        letter = draw(st.sampled_from(LETTERS))
        before, after = name[:place], name[place:]
        slip = draw(st.sampled_from(["more", "less", "other", "swapped", "case"]))
        name = {
            "more": before + letter + after,
            "less": before + after[1:],
            "other": before + letter + after[1:],
            "swapped": before + after[1:2] + after[:1] + after[2:],
            "case": before + after[:1].swapcase() + after[1:],
        }[slip]
    return name


@pytest.mark.parametrize(("written", "expected"), SLIPS)
def test_nearest(written: str, expected: str | None) -> None:
    assert _C.nearest_name(written, NAMES) == expected
    assert _C.nearest_name(written, tuple(reversed(NAMES))) == expected


@given(nearly(OPERATORS))
def test_names_of_operators(written: str) -> None:
    assert _C.nearest_name(written, OPERATORS) == nearest_name(written, OPERATORS)


@given(nearly(ARGUMENTS))
def test_names_of_arguments(written: str) -> None:
    assert _C.nearest_name(written, ARGUMENTS) == nearest_name(written, ARGUMENTS)


@given(st.text(LETTERS, max_size=6), st.lists(st.text("abAB", max_size=6), max_size=8))
def test_any_names(written: str, known: list[str]) -> None:
    assert _C.nearest_name(written, known) == nearest_name(written, known)


@given(st.text())
def test_any_text_is_a_name_that_is_not_there(written: str) -> None:
    """Not all of it is text in UTF-8: ``st.text`` leaves out halves of surrogate pairs, so one is added."""
    assume(written not in vars(backbind.ops) and not hasattr(ModuleType(""), written))
    for name in (written, f"{written}\ud800"):
        assert not hasattr(backbind.ops, name)
        with pytest.raises(KeyError):
            backbind.ops.get(name)


def test_what_is_no_sequence_of_names_is_refused() -> None:
    compiled: Any = _C
    with pytest.raises(TypeError, match="the known names must be a sequence"):
        compiled.nearest_name("self", 7)
