"""The tree of formulas and what is gathered from it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.parse.expression import (
    Binary,
    Braces,
    Call,
    Cast,
    Conditional,
    Expression,
    Index,
    Lambda,
    Literal,
    Member,
    Name,
    Unary,
    placed,
    replaced,
    walk,
)
from codegen.parse.formula import Formula, FormulaSyntaxError, parse_formula
from codegen.parse.lexer import LexError, TokenKind, tokenize
from codegen.parse.report import Report
from codegen.parse.span import SourceFile, Span
from codegen.parse.yaml_source import parse_entries
from codegen.parse.yaml_tree import read_source
from codegen.torch_install.locate import TorchInstall


def shape(node: Expression) -> Any:
    """The tree as nested lists, operators first."""
    match node:
        case Name():
            return node.qualified + (f"<{node.template_arguments}>" if node.template_arguments else "")
        case Literal():
            return node.text
        case Unary():
            return [node.operator, shape(node.operand)]
        case Binary():
            return [node.operator, shape(node.left), shape(node.right)]
        case Conditional():
            return ["?:", *map(shape, node.children())]
        case Call():
            return ["()", *map(shape, node.children())]
        case Member():
            template = f"<{node.template_arguments}>" if node.template_arguments else ""
            return ["->" if node.arrow else ".", shape(node.receiver), node.name + template]
        case Index():
            return ["[]", *map(shape, node.children())]
        case Braces():
            return ["{}", *map(shape, node.children())]
        case Cast():
            return ["cast", shape(node.type), shape(node.operand)]
        case Lambda():
            return ["lambda", *node.parameters, *map(shape, node.body)]
    raise AssertionError(node)


SHAPES: list[tuple[str, Any]] = [
    ("a + b * c", ["+", "a", ["*", "b", "c"]]),
    ("a - b - c", ["-", ["-", "a", "b"], "c"]),
    ("(a - b) * c", ["*", ["-", "a", "b"], "c"]),
    ("-a.b()", ["-", ["()", [".", "a", "b"]]]),
    ("a * -b", ["*", "a", ["-", "b"]]),
    ("!a || b && c", ["||", ["!", "a"], ["&&", "b", "c"]]),
    ("(a == 0.) & (b <= -1.)", ["&", ["==", "a", "0."], ["<=", "b", ["-", "1."]]]),
    ("a ? b : c ? d : e", ["?:", "a", "b", ["?:", "c", "d", "e"]]),
    ("a || b ? c : d + e", ["?:", ["||", "a", "b"], "c", ["+", "d", "e"]]),
    ("a->b(c)[0]", ["[]", ["()", ["->", "a", "b"], "c"], "0"]),
    ("*a + &b", ["+", ["*", "a"], ["&", "b"]]),
    ("f({{1, 2}}, {})", ["()", "f", ["{}", ["{}", "1", "2"]], ["{}"]]),
    ("at::f(x)", ["()", "at::f", "x"]),
    ("::std::nullopt", "std::nullopt"),
    ("std::get<0>(f(x))", ["()", "std::get<0>", ["()", "f", "x"]]),
    ("std::tuple<Tensor, Tensor>()", ["()", "std::tuple<Tensor, Tensor>"]),
    ("std::vector<std::optional<Tensor>>(n, x)", ["()", "std::vector<std::optional<Tensor>>", "n", "x"]),
    ("static_cast<double>(p)", ["()", "static_cast<double>", "p"]),
    ("s.to<double>() < 3", ["<", ["()", [".", "s", "to<double>"]], "3"]),
    ("a < b", ["<", "a", "b"]),
    ("f(a < b, c > (d))", ["()", "f", ["<", "a", "b"], [">", "c", "d"]]),
    ("std::array<bool, 2>{true, false}", ["{}", "std::array<bool, 2>", "true", "false"]),
    ("(int64_t) n * 2", ["*", ["cast", "int64_t", "n"], "2"]),
    ("(double)(n)", ["cast", "double", "n"]),
    ("(n) * (m)", ["*", "n", "m"]),
    ("f(/*dim=*/ 1, // last\n 2)", ["()", "f", "1", "2"]),
    ('f("a, (b" "c")', ["()", "f", '"a, (b" "c"']),
    ("f('(')", ["()", "f", "'('"]),
    ("1e-5 + .5f + 0x1F + 1'000", ["+", ["+", ["+", "1e-5", ".5f"], "0x1F"], "1'000"]),
    ("m(x, [](c10::SymInt i){return -i;})", ["()", "m", "x", ["lambda", "i", ["-", "i"]]]),
    ("[&](int a, const T& b) -> int { auto c = a; f(b); return c; }(x)",
     ["()", ["lambda", "a", "b", "c", "a", ["()", "f", "b"], "c"], "x"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SHAPES, ids=[text for text, _ in SHAPES])
def test_shape(text: str, expected: Any) -> None:
    assert shape(parse_formula(text).root) == expected


@pytest.mark.parametrize("text", [text for text, _ in SHAPES])
def test_places_are_inside_their_parents(text: str) -> None:
    for node, parent, _ in walk(parse_formula(text).root):
        assert 0 <= node.start < node.end <= len(text)
        if parent is not None:
            assert parent.start <= node.start
            assert node.end <= parent.end


def names(formula: Formula) -> list[str]:
    return [use.name for use in formula.free_names]


def test_names_calls_and_methods() -> None:
    formula = parse_formula(
        "at::f(grad, self.g<int>(n), kX) + std::vector<T>(m, at::R::None) * h(std::nullopt)"
    )
    assert names(formula) == ["grad", "self", "n", "kX", "m"]
    assert [(use.name, use.arguments, use.template_arguments) for use in formula.calls] == [
        ("at::f", 3, None),
        ("std::vector", 2, "T"),
        ("h", 1, None),
    ]
    assert [use.name for use in formula.qualified_names] == ["at::R::None", "std::nullopt"]
    assert [(use.name, use.receiver_name, len(use.arguments or ())) for use in formula.methods] == [
        ("g", "self", 1)
    ]
    assert formula.uses("self")
    assert not formula.uses("g")


def test_gradients() -> None:
    formula = parse_formula("grads[1] + grads[i] * grad_input_mask[0]")
    assert [(use.position, formula.span(use).text) for use in formula.gradient_indices] == [(1, "grads[1]")]
    assert formula.uses_all_gradients
    assert [(use.name, use.position) for use in formula.indexed] == [
        ("grads", 1),
        ("grads", None),
        ("grad_input_mask", 0),
    ]
    assert not parse_formula("grads[0] + grads[1]").uses_all_gradients


def test_lambda_parameters_are_not_free() -> None:
    assert names(parse_formula("m(i, [](int i) { return i + j; })")) == ["i", "j"]


def test_member_that_is_read_not_called() -> None:
    (use,) = parse_formula("pair.first").methods
    assert (use.name, use.arguments) == ("first", None)


def test_spans_count_from_the_formula_s_place() -> None:
    file = SourceFile("d", "self: grad * slef")
    formula = parse_formula("grad * slef", Span(file, 6, 17))
    assert [str(formula.span(use)) for use in formula.free_names] == ["d:1:7", "d:1:14"]


@pytest.mark.parametrize("text", ["", "   ", "/* nothing */"])
def test_empty(text: str) -> None:
    with pytest.raises(FormulaSyntaxError) as caught:
        parse_formula(text)
    assert caught.value.message == "the formula is empty"


def test_long_sums_are_no_problem() -> None:
    formula = parse_formula(" + ".join(f"x{i}" for i in range(5000)))
    assert len(formula.free_names) == 5000


@pytest.mark.parametrize(
    "text", ["(" * 2000 + "x" + ")" * 2000, "-" * 5000 + "x", "x ? " * 3000 + "y", "f(" * 99 + ")" * 99]
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(FormulaSyntaxError):
        parse_formula(text)


FRAGMENTS = [
    "grad",
    "self",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ",",
    "::",
    ".",
    "->",
    "?",
    ":",
    "*",
    "-",
    "=",
    ";",
]
FRAGMENTS += [
    "std::get",
    "return",
    "auto",
    '"a"',
    "'b'",
    "1.",
    "0",
    " ",
    "/*",
    "*/",
    '"',
    "\\",
    "\n",
    "é",
    "int64_t",
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join))
def test_any_text_is_a_formula_or_a_syntax_error_with_a_place(text: str) -> None:
    try:
        formula = parse_formula(text)
    except FormulaSyntaxError as error:
        assert 0 <= error.start <= error.end <= len(text)
        assert error.message
    else:
        assert formula.root.end <= len(text)


@given(st.text(max_size=60))
def test_tokens_and_blanks_make_up_the_text(text: str) -> None:
    try:
        tokens = tokenize(text)
    except LexError as error:
        assert 0 <= error.start <= error.end <= len(text)
        return
    assert tokens[-1].kind is TokenKind.END
    for token in tokens:
        assert text[token.start : token.end] == token.text
    for before, after in pairwise(tokens):
        assert before.end <= after.start


def stock_formulas(install: TorchInstall) -> list[str]:
    report = Report()
    source = read_source(install.derivatives_yaml, "d", report)
    assert source is not None
    return [
        raw.text
        for entry in parse_entries(source, report)
        for block in entry.dispatch
        for raw in block.formulas
    ]


def test_every_stock_formula_parses(installed_torch: TorchInstall) -> None:
    formulas = stock_formulas(installed_torch)
    assert len(formulas) > 1300
    for text in formulas:
        formula = parse_formula(text)
        assert formula.root.start >= 0


@pytest.mark.slow
def test_every_formula_of_the_next_torch_parses(torch_2_14: TorchInstall) -> None:
    for text in stock_formulas(torch_2_14):
        parse_formula(text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x * (a + b).sum()", "(a + b).sum()"),
        ("((a))[0] + c", "((a))[0]"),
        ("f((a + b) * (c))", "(a + b) * (c)"),
        ("-(a)", "-(a)"),
        ("(a) ? (b) : (c)", "(a) ? (b) : (c)"),
        ("(int)(a)", "(int)(a)"),
    ],
)
def test_brackets_around_operands_belong_to_what_they_are_operands_of(text: str, part: str) -> None:
    assert part in {text[node.start : node.end] for node, _, _ in walk(parse_formula(text).root)}


@pytest.mark.parametrize("text", [text for text, _ in SHAPES])
def test_each_expression_can_be_replaced(text: str) -> None:
    root = parse_formula(text).root
    new = parse_formula("new.value(1)").root
    for node, parent, _ in walk(root):
        if isinstance(parent, Braces) and parent.type is node:
            continue
        made = replaced(root, {id(node): placed(new, node.start, node.end)})
        found = [one for one, _, _ in walk(made) if isinstance(one, Member) and one.name == "value"]
        assert [(one.start, one.end, one.name_start) for one in found] == [(node.start, node.end, node.start)]
        # Everything else is as it was.
        assert shape(replaced(made, {id(parent_of(made, found[0])): node})) == shape(root)
    assert replaced(root, {}) is root


def parent_of(root: Expression, wanted: Expression) -> Expression:
    return next(parent for node, parent, _ in walk(root) if node is wanted and parent is not None)
