"""Operators over lists get the formulas of the operator that they repeat, or a message that says why not."""

from __future__ import annotations

from codegen.check import check_entries
from codegen.parse.report import Report
from codegen.parse.yaml_source import parse_entries
from codegen.parse.yaml_tree import decode_source
from codegen.resolve import resolve_derivatives
from codegen.resolve.records import Derivatives
from codegen.torch_install.operators import Operators
from codegen.torch_install.vocabulary import Vocabulary


def resolve(text: str, operators: Operators, vocabulary: Vocabulary) -> tuple[Derivatives, str]:
    """The nodes of a file, and what is said about it."""
    report = Report()
    source = decode_source(text.encode(), "mine.yaml", report)
    assert source is not None
    entries = check_entries(parse_entries(source, report), operators, vocabulary, report)
    schemas = [operator.schema for operator in operators.items]
    return resolve_derivatives([entry.formulas for entry in entries], schemas, report), report.render()


def test_a_formula_speaks_of_elements(operators: Operators, vocabulary: Vocabulary) -> None:
    text = (
        "- name: clamp_max.Tensor(Tensor self, Tensor max) -> Tensor\n"
        "  self: where(self <= max, grad, at::zeros({}, self.options()))\n"
        "  max: maybe_multiply(grad, [](Tensor x) { return x; }, max.scalar_type(), result)\n"
    )
    derivatives, said = resolve(text, operators, vocabulary)
    assert said == ""
    (node,) = (node for node in derivatives.nodes if node.origin == "foreach")
    assert (node.name, node.schema.full_name) == ("ForeachClampMaxBackward0List", "_foreach_clamp_max.List")
    assert [(one.inputs, one.text) for one in node.formulas] == [
        # Indexed twice where the tensor is read whole, too: so are the nodes that torch was compiled with.
        (("self",), "where(self[i] <= other[i], grads[i], at::zeros({}, self[i][i].options()))"),
        (
            ("other",),
            "maybe_multiply(grads[i], [](Tensor x) { return x; }, other[i].scalar_type(), result[i])",
        ),
    ]
    assert [one.name for one in node.saved] == ["other", "self", "result"]


def test_an_argument_that_lists_lack_is_an_error(operators: Operators, vocabulary: Vocabulary) -> None:
    text = (
        "- name: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor\n"
        "  self: maybe_multiply(grad, alpha)\n"
    )
    _, said = resolve(text, operators, vocabulary)
    first, second = (
        f"mine.yaml:2:30: error: '{name}' has no 'alpha', and its node is derived from this formula\n"
        "  self: maybe_multiply(grad, alpha)\n"
        "                             ^~~~~\n"
        f"hint: leave 'alpha' out, or give '{name}' an entry of its own\n\n"
        for name in ("_foreach_add.Scalar", "_foreach_add.ScalarList")
    )
    assert said == f"{first}{second}2 errors\n"


def test_an_operator_with_an_entry_of_its_own_is_not_derived(
    operators: Operators, vocabulary: Vocabulary
) -> None:
    entry = "- name: exp(Tensor self) -> Tensor\n  self: grad * result.conj()\n"
    own = "- name: _foreach_exp(Tensor[] self) -> Tensor[]\n  self: grads[i] * result[i]\n"
    derivatives, said = resolve(entry, operators, vocabulary)
    assert [(node.name, node.origin) for node in derivatives.nodes] == [
        ("ExpBackward0", "entry"),
        ("ForeachExpBackward0", "foreach"),
    ]
    derivatives, said = resolve(entry + own, operators, vocabulary)
    assert said == ""
    assert [(node.name, node.origin) for node in derivatives.nodes] == [
        ("ExpBackward0", "entry"),
        ("ForeachExpBackward0", "entry"),
    ]
