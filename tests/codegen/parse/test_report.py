"""How messages look."""

from __future__ import annotations

import pytest

from codegen.parse.report import LINE_WIDTH, InternalError, Report, processing
from codegen.parse.span import SourceFile, Span


def test_whole_rendering() -> None:
    file = SourceFile("d.yaml", "first line\nsecond line\n")
    report = Report()
    report.notice(Span(file, 18, 22), "'line' is plain")
    report.error(Span(file, 0, 5), "'first' is wrong", "write 'last'\nor nothing")
    assert report.render() == (
        "d.yaml:1:1: error: 'first' is wrong\n"
        "first line\n"
        "^~~~~\n"
        "hint: write 'last'\n"
        "      or nothing\n"
        "\n"
        "d.yaml:2:8: notice: 'line' is plain\n"
        "second line\n"
        "       ^~~~\n"
        "\n"
        "1 error, 1 notice\n"
    )


CARETS = [
    pytest.param("abc", 1, 2, " ^", id="one_character"),
    pytest.param("abc", 3, 3, "   ^", id="end_of_line"),
    pytest.param("abc\ndef", 1, 6, " ^~", id="range_over_lines_stops_at_its_line"),
    pytest.param("\tab", 1, 3, "\t^~", id="tab_before"),
    pytest.param("数字ab", 2, 4, "    ^~", id="wide_characters_before"),
    pytest.param("a数b", 1, 2, " ^~", id="wide_character_under_caret"),
    pytest.param("e\u0301b", 2, 3, " ^", id="combining_character_before"),
    pytest.param("", 0, 0, None, id="empty_file"),
]


@pytest.mark.parametrize(("text", "start", "end", "expected"), CARETS)
def test_caret(text: str, start: int, end: int, expected: str | None) -> None:
    report = Report()
    report.error(Span(SourceFile("f", text), start, end), "m")
    lines = report.render().splitlines()
    assert (lines[2] if expected is not None else None) == expected


@pytest.mark.parametrize("offset", [0, 79, 300, 990])
def test_long_line_is_cut_around_the_caret(offset: int) -> None:
    text = "".join(f"{position:<5}" for position in range(0, 1000, 5))
    report = Report()
    report.error(Span(SourceFile("f", text), offset, offset + 1), "m")
    _, line, caret, *_ = report.render().splitlines()
    assert len(line) <= LINE_WIDTH + 6
    assert line[caret.index("^")] == text[offset]


def test_control_characters_are_not_printed() -> None:
    report = Report()
    report.error(Span(SourceFile("f", "a\x1b[31mb"), 6, 7), "m")
    assert report.render().splitlines()[1] == "a\N{REPLACEMENT CHARACTER}[31mb"


COUNTS = [(0, 0, "no errors"), (1, 0, "1 error"), (2, 1, "2 errors, 1 notice"), (0, 2, "2 notices")]


@pytest.mark.parametrize(("errors", "notices", "expected"), COUNTS)
def test_count_line(errors: int, notices: int, expected: str) -> None:
    report, span = Report(), Span(SourceFile("f", "x"), 0, 1)
    for _ in range(errors):
        report.error(span, "m")
    for _ in range(notices):
        report.notice(span, "m")
    assert report.count_line() == expected
    assert report.has_errors == (errors > 0)
    report.drop_notices()
    assert (len(report.errors), len(report.notices)) == (errors, 0)


def test_diagnostics_of_several_files_stay_together() -> None:
    first, second = SourceFile("a", "xy"), SourceFile("b", "xy")
    report = Report()
    for file, start in ((second, 1), (first, 0), (second, 0)):
        report.error(Span(file, start, start + 1), "m")
    assert [str(item.span) for item in report.in_order()] == ["b:1:1", "b:1:2", "a:1:1"]


def test_innermost_entry_is_blamed() -> None:
    file = SourceFile("f", "xy")
    with (
        pytest.raises(InternalError) as caught,
        processing("entry 'outer'", Span(file, 0, 1)),
        processing("entry 'inner'", Span(file, 1, 2)),
    ):
        raise KeyError("row")
    assert str(caught.value) == (
        "internal error in the generator while it processed entry 'inner' at f:1:2\n"
        "  KeyError: 'row'\n"
        "this is a defect of backbind, not of the file; please report it with the entry"
    )
