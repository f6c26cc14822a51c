"""The stubs say what there is: stubtest, signatures and documentation of every operator, and typed calls."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import backbind
import pytest
from backbind._operator import FunctionalOperator

from tests.conftest import REPOSITORY

STUBS = REPOSITORY / "runtime" / "backbind" / "ops" / "__init__.pyi"
EXAMPLES = Path(__file__).parent / "typed_calls.py"
OPERATORS = list(backbind.ops)


def run_module(*command: str, mypy_path: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "runtime"), "MYPYPATH": mypy_path}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def classes() -> dict[str, ast.ClassDef]:
    """The protocol of each operator in the stubs, by the operator's name."""
    tree = ast.parse(STUBS.read_text(encoding="utf-8"))
    by_class = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return {
        node.target.id: by_class[node.annotation.id]
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(node.annotation, ast.Name)
    }


def test_the_stubs_have_every_operator(classes: dict[str, ast.ClassDef]) -> None:
    assert set(classes) == {operator.name for operator in OPERATORS}


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_stub_and_operator_agree(operator: FunctionalOperator, classes: dict[str, ast.ClassDef]) -> None:
    definition = classes[operator.name]
    (call,) = [one for one in definition.body if isinstance(one, ast.FunctionDef) and one.name == "__call__"]
    assert [one.arg for one in call.args.posonlyargs] == ["self_"]
    in_stub = [(one.arg, ast.unparse(one.annotation)) for one in call.args.args if one.annotation is not None]
    signature = inspect.signature(operator)
    assert in_stub == [(name, one.annotation) for name, one in signature.parameters.items()]
    assert call.returns is not None
    assert ast.unparse(call.returns) == signature.return_annotation
    assert not call.args.defaults
    assert call.args.vararg is call.args.kwarg is None
    assert ast.get_docstring(definition) == operator.__doc__


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_documentation(operator: FunctionalOperator) -> None:
    text = operator.__doc__
    assert text is not None
    assert operator.record.forward_schema in text
    assert text.rstrip(".").endswith("of torch 2.13.0")
    for formula in operator.formulas:
        assert f"{', '.join(formula.inputs)}: {formula.text}" in text
    for argument in operator.saved:
        assert f"  {argument.name} ({argument.schema_type}): {argument.meaning}" in text
    assert re.search(r"Source: (\w+ of the entry at )?derivatives\.yaml:\d+ of torch", text)


# What stubtest is told to overlook, each for a reason.
_ALLOWED = (
    "backbind._C.RawStep",  # names of types, for the stub alone
    "backbind._C.RawTarget",
    "backbind._C.Operator.__module__",  # a property, which type checkers do not let a class declare
    "backbind._C.Operator.__name__",  # on the class, the name of the class
    "backbind._C.Operator.__qualname__",
)


@pytest.mark.slow
def test_stubtest(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed.txt"
    allowed.write_text("\n".join(re.escape(name) for name in _ALLOWED))
    process = run_module(
        *("mypy.stubtest", "--allowlist", str(allowed), "backbind.ops", "backbind._C"),
        mypy_path=str(REPOSITORY / "runtime"),
    )
    assert process.returncode == 0, process.stdout[-4000:] + process.stderr[-2000:]


@pytest.mark.slow
def test_type_checker_passes_good_calls_and_flags_wrong_ones() -> None:
    """Lines that end in ``# error: CODE`` must be flagged with that code, and no others."""
    process = run_module(
        *("mypy", "--strict", "--no-error-summary", "--hide-error-context", "--config-file=", str(EXAMPLES)),
        mypy_path=str(REPOSITORY / "runtime"),
    )
    flagged = {
        (int(found[1]), found[2])
        for line in process.stdout.splitlines()
        if (found := re.match(r".*typed_calls\.py:(\d+): error: .*\[([\w-]+)\]$", line))
    }
    lines = EXAMPLES.read_text(encoding="utf-8").splitlines()
    expected = {
        (number, found[1])
        for number, line in enumerate(lines, start=1)
        if (found := re.search(r"# error: ([\w-]+)$", line))
    }
    assert len(expected) >= 8
    assert flagged == expected, process.stdout + process.stderr
