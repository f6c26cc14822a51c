"""Offsets, lines, columns, and text whose characters stand apart in the file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.parse.span import SourceFile, SourceText, Span


@given(st.text(alphabet="ab\n\r\té", max_size=60), st.data())
def test_line_and_column_lead_back_to_the_character(text: str, data: st.DataObject) -> None:
    file = SourceFile("f", text)
    offset = data.draw(st.integers(0, len(text)))
    span = Span(file, offset, offset)
    assert file.line_starts[span.line - 1] + span.column - 1 == offset
    assert text[:offset].count("\n") == span.line - 1


@given(st.text(alphabet="ab\n", max_size=40))
def test_line_texts_are_the_lines(text: str) -> None:
    file = SourceFile("f", text)
    assert [file.line_text(number) for number in range(1, len(file.line_starts) + 1)] == text.split("\n")


def test_shown_place() -> None:
    assert str(Span(SourceFile("derivatives.yaml", "ab\ncd"), 4, 5)) == "derivatives.yaml:2:2"


PIECES = [
    pytest.param("a", ["a"], id="one"),
    pytest.param("a, b", ["a", "b"], id="two"),
    pytest.param(" a ,,b", ["a", "", "b"], id="blanks_and_nothing"),
    pytest.param("", [""], id="nothing"),
]


@pytest.mark.parametrize(("text", "expected"), PIECES)
def test_pieces_know_their_places(text: str, expected: list[str]) -> None:
    file = SourceFile("f", f"xx{text}yy")
    pieces = SourceText(text, Span(file, 2, 2 + len(text))).pieces(",")
    assert [piece.text for piece in pieces] == expected
    assert [piece.span.text for piece in pieces] == expected


def test_part_of_text_that_is_written_apart() -> None:
    file = SourceFile("f", "a\n  bc")
    text = SourceText("a bc", Span(file, 0, 6), (0, 1, 4, 5))
    assert [text.part(0, 1).text, text.part(2, 4).text, text.part(0, 3).text] == ["a", "bc", "a\n  b"]
    assert (text.part(4, 4).start, text.part(2, 2).start) == (6, 4)
