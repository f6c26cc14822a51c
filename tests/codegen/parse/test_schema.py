"""Schemas: every one of the installed torch reads as torchgen reads it, and anything else is refused with a
place.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.parse.schema import SchemaSyntaxError, parse_schema
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.operators import Operators


@pytest.fixture(scope="module")
def torchgen_functions(installed_torch: TorchInstall) -> dict[str, Any]:
    from torchgen.gen import parse_native_yaml

    parsed = parse_native_yaml(str(installed_torch.native_functions_yaml), str(installed_torch.tags_yaml))
    return {str(function.func): function for function in parsed.native_functions}


def lengthless(type_: object) -> str:
    return re.sub(r"\[\d+\]", "[]", str(type_))


def test_every_schema_is_known_to_torchgen(operators: Operators, torchgen_functions: dict[str, Any]) -> None:
    unknown = set(operators.by_schema) - set(torchgen_functions)
    assert unknown == set()
    # Of the forms that torchgen makes by itself, only out= forms are unknown to us: they have no derivatives.
    generated = set(torchgen_functions) - set(operators.by_schema)
    assert all(torchgen_functions[schema].func.is_out_fn() for schema in generated)


def test_every_schema_reads_as_in_torchgen(operators: Operators, torchgen_functions: dict[str, Any]) -> None:
    for text, operator in operators.by_schema.items():
        theirs, ours = torchgen_functions[text].func, operator.schema
        assert [(a.name, a.type) for a in ours.arguments] == [
            (a.name, lengthless(a.type)) for a in theirs.arguments.flat_all
        ]
        assert [(r.name, r.type) for r in ours.returns] == [
            (r.name, lengthless(r.type)) for r in theirs.returns
        ]
        assert (ours.is_out, ours.is_inplace, ours.has_symint, ours.full_name) == (
            theirs.is_out_fn(),
            theirs.name.name.inplace,
            theirs.has_symint(),
            str(theirs.name),
        )


def test_names_in_formulas_are_those_of_torchgen(
    operators: Operators, torchgen_functions: dict[str, Any]
) -> None:
    from torchgen.api import cpp
    from torchgen.packaged.autograd.load_derivatives import cpp_arguments

    for text, operator in operators.by_schema.items():
        if operator.schema.is_out:
            continue
        theirs = torchgen_functions[text]
        assert [a.name for a in operator.schema.formula_arguments] == [b.name for b in cpp_arguments(theirs)]
        outputs = tuple("result" if name == "self" else name for name in cpp.return_names(theirs))
        assert operator.schema.output_names == outputs


BROKEN = [
    ("", "expected the operator's name", 0),
    ("f", "expected '(' and the arguments after the operator's name", 1),
    ("f(Tensor x", "this '(' is never closed", 1),
    ("f(Tensor)", "expected an argument, '<type> <name>' or '<type> <name>=<default>'", 2),
    ("f(Tensor x, ) -> Tensor", "expected an argument, '<type> <name>' or '<type> <name>=<default>'", 12),
    ("f(Tensor x, Tensor x) -> Tensor", "a second argument 'x'", 12),
    ("f(Tensor x)", "expected '->' and the outputs after the arguments", 11),
    ("f(Tensor x) ->", "expected the outputs after '->'; an operator without outputs ends in '-> ()'", 14),
    ("f(Tensor x) -> (Tensor) y", "the schema should end here", 23),
    ("f(Tensor x) -> 3", "expected an output, '<type>' or '<type> <name>'", 15),
]


@pytest.mark.parametrize(
    ("text", "message", "start"), BROKEN, ids=[text or "nothing" for text, _, _ in BROKEN]
)
def test_broken_schema(text: str, message: str, start: int) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema(text)
    assert (caught.value.message, caught.value.start) == (message, start)


PARTS = [
    "f",
    "Tensor",
    " ",
    "x",
    "(",
    ")",
    "[",
    "]",
    "?",
    ",",
    "*",
    "->",
    "=",
    "'a,b'",
    "(a!)",
    "3",
    ".",
    "é",
    "\n",
]


@given(st.lists(st.sampled_from(PARTS), max_size=20).map("".join))
def test_any_text_is_a_schema_or_refused_with_a_place(text: str) -> None:
    try:
        schema = parse_schema(text)
    except SchemaSyntaxError as error:
        assert 0 <= error.start <= error.end <= len(text)
    else:
        assert schema.text == text
