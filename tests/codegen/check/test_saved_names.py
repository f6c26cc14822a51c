"""Two values that would be saved under one name are an error, whichever formulas read them."""

from __future__ import annotations

import pytest

from codegen.check import check_entries
from codegen.parse.report import Report
from codegen.parse.schema import parse_schema
from codegen.parse.yaml_source import parse_entries
from codegen.parse.yaml_tree import decode_source
from codegen.torch_install.operators import Operator, Operators
from codegen.torch_install.vocabulary import Vocabulary

SCHEMA = "f(Tensor self, Tensor other, int self_dim) -> Tensor"


@pytest.mark.parametrize(
    ("formulas", "line", "column"),
    [
        (["grad * self.dim() * self_dim", "grad"], 2, 9),
        (["grad * self.dim()", "grad * self_dim"], 3, 10),
    ],
)
def test_one_name_for_two_values(
    formulas: list[str], line: int, column: int, operators: Operators, vocabulary: Vocabulary
) -> None:
    text = f"- name: {SCHEMA}\n  self: {formulas[0]}\n  other: {formulas[1]}\n"
    report = Report()
    source = decode_source(text.encode(), "mine.yaml", report)
    assert source is not None
    own = operators.with_more([Operator(parse_schema(SCHEMA), False, True, False)])
    assert check_entries(parse_entries(source, report), own, vocabulary, report) == ()
    written = formulas[line - 2]
    key = "self" if line == 2 else "other"
    assert report.render() == (
        f"mine.yaml:{line}:{column}: error: 'self.dim()' and 'self_dim' would both be saved as 'self_dim'\n"
        f"  {key}: {written}\n"
        f"{' ' * (column - 1)}^{'~' * (len(written) - 1)}\n"
        "hint: give an argument of the operator another name\n\n1 error\n"
    )
