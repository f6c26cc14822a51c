"""What is compiled has each token on its line of the YAML, so that a compiler's message names that line."""

from __future__ import annotations

import pytest

from codegen.parse.formula import parse_formula
from codegen.parse.lexer import TokenKind, tokenize
from codegen.parse.report import Report
from codegen.parse.schema import parse_schema
from codegen.parse.yaml_source import parse_entries
from codegen.parse.yaml_tree import decode_source
from codegen.resolve.formula import resolve_formula, values_of
from codegen.resolve.layout import Layout, layout_of
from codegen.resolve.records import Derivatives, ResolvedFormula

SCHEMA = "mul.Tensor(Tensor self, Tensor other) -> Tensor"


def resolve(written: str) -> ResolvedFormula:
    """The formula of ``self``, which begins on line 2 of a file."""
    report = Report()
    source = decode_source(f"- name: {SCHEMA}\n  self: {written}\n".encode(), "mine.yaml", report)
    assert source is not None
    (entry,) = parse_entries(source, report)
    formula = parse_formula(entry.dispatch[0].formulas[0].source)
    resolved = resolve_formula(formula, ("self",), values_of(parse_schema(SCHEMA)), report)
    assert [one.render() for one in report.errors] == []
    return resolved


FORMS = {
    "one_line": ("grad *  other.conj()", 2, ("grad * other.conj()",)),
    "plain": ("grad *\n    other.conj()", 2, ("grad *", "other.conj()")),
    "folded": (">\n    grad *\n\n    other", 3, ("grad *", "", "other")),
    "literal": ("|\n    grad *\n    other", 3, ("grad *", "other")),
    "double_quotes": ('"grad *\n    other"', 2, ("grad *", "other")),
    "single_quotes": ("'grad\n\n    * other'", 2, ("grad", "", "* other")),
    "escaped_line_break": ('"grad * \\n other"', 2, ("grad * other",)),
    "reading": (
        "f(grad, self\n    .sym_sizes(\n    ), other)",
        2,
        ("f(grad, self_sym_sizes", "", ", other)"),
    ),
    "reading_of_the_next_line": (
        "f(grad,\n    zeros_like(\n    self))",
        2,
        ("f(grad,", "self_info.zeros()", ")"),
    ),
    "string": ('f(grad, "not\n    yet")', 2, ('f(grad, "not yet"', ")")),
    "block_comment": ("grad /* twice\n    the */ * other", 2, ("grad /* twice the */", "* other")),
    "line_comment": ("|\n    grad // times\n    * other // once", 3, ("grad", "* other")),
    "folded_line_comment": (">\n    grad // times\n    * other", 3, ("grad",)),
}


@pytest.mark.parametrize(("written", "line", "lines"), FORMS.values(), ids=FORMS.keys())
def test_each_form_of_scalar(written: str, line: int, lines: tuple[str, ...]) -> None:
    assert layout_of(resolve(written)) == Layout(line, lines)


def test_every_token_of_every_formula_is_on_its_line(resolved: Derivatives) -> None:
    formulas = [formula for node in resolved.nodes for formula in node.formulas]
    layouts = [layout_of(formula) for formula in formulas]
    assert sum(len(layout.lines) > 1 for layout in layouts) > 3
    for formula, (first, lines) in zip(formulas, layouts, strict=True):
        assert [token.text for token in tokenize("\n".join(lines))] == [
            token.text for token in tokenize(formula.text)
        ]
        if formula.edits:
            continue
        source, text = formula.written.source, "\n".join(lines)
        places = [
            first + text[: token.start].count("\n")
            for token in tokenize(text)
            if token.kind is not TokenKind.END
        ]
        written = [token for token in tokenize(source.text) if token.kind is not TokenKind.END]
        assert places == [source.part(token.start, token.end).line for token in written]
