"""A resolved formula knows its way back: what each part of it was written as, and where."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from codegen.parse.expression import walk
from codegen.parse.formula import parse_formula
from codegen.parse.report import Report
from codegen.parse.schema import parse_schema
from codegen.parse.span import SourceFile, SourceText, Span
from codegen.resolve.formula import resolve_formula, values_of
from codegen.resolve.records import Derivatives, ResolvedFormula

from ..parse.test_formula import shape


@pytest.fixture(scope="module")
def formulas(resolved: Derivatives) -> tuple[ResolvedFormula, ...]:
    return tuple(formula for node in resolved.nodes for formula in node.formulas)


def test_trees_are_those_of_what_is_compiled(formulas: tuple[ResolvedFormula, ...]) -> None:
    for formula in formulas:
        assert shape(formula.root) == shape(parse_formula(formula.text).root)


def test_every_part_stands_in_the_yaml(formulas: tuple[ResolvedFormula, ...]) -> None:
    for formula in formulas:
        written = formula.written
        for node, parent, _ in walk(formula.root):
            outer = written.source.span if parent is None else written.span(parent)
            inner = written.span(node)
            assert outer.start <= inner.start < inner.end <= outer.end
            part = written.text[node.start : node.end]
            assert part.split() == inner.text.split()


def test_edits_follow_one_another(formulas: tuple[ResolvedFormula, ...]) -> None:
    assert sum(bool(formula.edits) for formula in formulas) > 200
    for formula in formulas:
        for edit, following in pairwise(formula.edits):
            assert edit.start < edit.end <= following.start


def parts(formula: ResolvedFormula) -> Iterator[tuple[str, str]]:
    """What is compiled for each edit, and the place of what was written."""
    for edit in formula.edits:
        yield edit.text, str(formula.written.source.part(edit.start, edit.end))


def test_places_in_a_file() -> None:
    text = "self: >\n  f(grad,\n    (self)\n      .sym_sizes(),\n    mode, zeros_like(other))\n"
    file = SourceFile("mine.yaml", text)
    source = SourceText(text[10:-1], Span(file, 10, len(text) - 1))
    values = values_of(parse_schema("g(Tensor self, Tensor other, str? mode) -> Tensor"))
    report = Report()
    resolved = resolve_formula(parse_formula(source), ("self",), values, report)
    assert report.errors == ()
    assert list(parts(resolved)) == [
        ("self_sym_sizes", "mine.yaml:3:5"),
        (
            "mode.has_value() ? std::optional<std::string_view>(mode.value()) : std::nullopt",
            "mine.yaml:5:5",
        ),
        ("other_info.zeros()", "mine.yaml:5:11"),
    ]
    assert [one.expression for one in resolved.saved] == ["self.sym_sizes()", "mode", "other"]
