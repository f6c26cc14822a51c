"""The records of the operators by area: an area is imported when one of its records is asked for, and not before."""

from __future__ import annotations

from importlib import import_module

import backbind
import pytest
from backbind._records import NodeRecord
from backbind.ops._areas import AREA_OF

from tests.conftest import REPOSITORY
from tests.processes import run_python

AREAS = sorted(set(AREA_OF.values()))

PROGRAM = """
import sys, torch, backbind

def imported():
    return {name for name in sys.modules if name.startswith("backbind.ops.")}

x = torch.ones(2, requires_grad=True)
node = x.tanh().grad_fn
operator = backbind.ops.for_node(node)
assert operator is backbind.ops.get("TanhBackward0") and operator in list(backbind.ops)
assert operator.name in dir(backbind.ops) and len(backbind.ops) == 711
operator([x], *backbind.pack(node)), operator.name, operator.schema, operator.mode, operator.overload, repr(operator)
assert imported() == set(), imported()

expected = {"backbind.ops._areas"}
for name, area, question in (
    ("TanhBackward0", "activation", "record"),
    ("MulBackward0", "elementwise", "source"),
    ("MmBackward0", "linear_algebra", "formulas"),
    ("CatBackward0", "shapes", "__doc__"),
    ("SumBackward0", "reductions", "__signature__"),
):
    getattr(backbind.ops.get(name), question)
    expected.add(f"backbind.ops._areas.{area}")
    assert imported() == expected, (question, imported())
"""


def test_questions_import_the_records_of_an_area() -> None:
    """The names, calls, packing and the look-up of operators need no record."""
    run_python("-c", PROGRAM, env={"PYTHONPATH": str(REPOSITORY / "runtime")})


@pytest.mark.parametrize("area", AREAS)
def test_an_area_has_the_records_of_its_operators(area: str) -> None:
    records: dict[str, NodeRecord] = import_module(f"backbind.ops._areas.{area}").RECORDS
    assert list(records) == sorted(name for name, other in AREA_OF.items() if other == area)
    for name, record in records.items():
        assert backbind.ops.get(name).record is record


def test_every_operator_has_an_area() -> None:
    ops: object = backbind.ops
    assert list(AREA_OF) == [operator.name for operator in ops]  # type: ignore[attr-defined]
