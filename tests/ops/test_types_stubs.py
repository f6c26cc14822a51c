"""The stubs of ``backbind.ops`` say what the operators themselves say: every signature and docstring, word by word."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import backbind
import pytest
from backbind._operator import FunctionalOperator
from backbind.ops._areas import AREA_OF

STUB = Path(backbind.ops.__file__).with_suffix(".pyi")
AREA_STUBS = {path.stem: path for path in sorted((STUB.parent / "_areas").glob("*.pyi"))}
OPERATORS = list(backbind.ops)


@dataclass(frozen=True)
class StubEntry:
    """One operator in the stubs."""

    parameters: tuple[tuple[str, str], ...]
    """Name and annotation of each."""
    returns: str
    doc: str | None


def read_area(tree: ast.Module) -> dict[str, StubEntry]:
    """The protocols of one area by name, each with a ``__call__``."""
    return {node.name: _entry(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def read_stub(tree: ast.Module, areas: Mapping[str, Mapping[str, StubEntry]]) -> dict[str, StubEntry]:
    """Operators by name: variables whose type is a protocol of an area."""
    modules = {
        one.asname: one.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "backbind.ops._areas"
        for one in node.names
    }
    return {
        node.target.id: areas[modules[node.annotation.value.id]][node.annotation.attr]
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.annotation, ast.Attribute)
        and isinstance(node.annotation.value, ast.Name)
    }


def _entry(protocol: ast.ClassDef) -> StubEntry:
    assert [ast.unparse(base) for base in protocol.bases] == ["FunctionalOperator", "Protocol"]
    (call,) = (node for node in protocol.body if isinstance(node, ast.FunctionDef))
    assert call.name == "__call__"
    assert [one.arg for one in call.args.posonlyargs] == ["self_"]
    assert call.returns is not None
    parameters = []
    for one in call.args.args:
        assert one.annotation is not None
        parameters.append((one.arg, ast.unparse(one.annotation)))
    others = call.args.vararg, call.args.kwarg, call.args.kwonlyargs, call.args.defaults
    assert others == (None, None, [], [])
    return StubEntry(tuple(parameters), ast.unparse(call.returns), ast.get_docstring(protocol))


TREE = ast.parse(STUB.read_text())
AREAS = {area: read_area(ast.parse(path.read_text())) for area, path in AREA_STUBS.items()}
ENTRIES = read_stub(TREE, AREAS)


def test_the_stubs_have_the_operators_in_their_order() -> None:
    assert list(ENTRIES) == [operator.name for operator in OPERATORS]


def test_the_area_of_a_signature_is_that_of_the_record() -> None:
    assert {name: area for area, entries in AREAS.items() for name in entries} == AREA_OF


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_a_signature_in_the_stubs_is_that_of_the_operator(operator: FunctionalOperator) -> None:
    signature = inspect.signature(operator)
    entry = ENTRIES[operator.name]
    assert entry.parameters == tuple((one.name, one.annotation) for one in signature.parameters.values())
    assert entry.returns == signature.return_annotation
    for one in signature.parameters.values():
        assert (one.kind, one.default) == (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_a_docstring_in_the_stubs_is_that_of_the_operator(operator: FunctionalOperator) -> None:
    assert operator.__doc__ is not None
    assert ENTRIES[operator.name].doc == inspect.cleandoc(operator.__doc__) == operator.__doc__


def test_the_public_names_of_the_stubs_are_those_of_the_module() -> None:
    functions = [node.name for node in TREE.body if isinstance(node, ast.FunctionDef)]
    public = [name for name in functions if not name.startswith("_")]
    assert sorted([*public, *ENTRIES]) == sorted(backbind.ops.__all__) == dir(backbind.ops)
    assert sorted(functions) == sorted([*public, "__len__", "__iter__", "__contains__"])


@pytest.mark.parametrize("name", ["get", "for_node"])
def test_a_function_in_the_stubs_has_the_signature_of_the_module(name: str) -> None:
    (function,) = (node for node in TREE.body if isinstance(node, ast.FunctionDef) and node.name == name)
    signature = inspect.signature(getattr(backbind.ops, name))
    assert f"({ast.unparse(function.args)}) -> {ast.unparse(function.returns or ast.Constant(None))}" == str(
        signature
    ).replace("'", "")
