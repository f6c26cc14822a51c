"""Operators as Python objects: identity, copying, pickling, printing, the namespace as a container."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import pydoc
import weakref
from typing import Any

import backbind
import pytest
import torch
from backbind._operator import FunctionalOperator

OPERATORS = list(backbind.ops)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_copies_are_the_operator_itself(operator: FunctionalOperator) -> None:
    assert copy.copy(operator) is operator
    assert copy.deepcopy(operator) is operator
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(operator, protocol)) is operator


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_descriptions_agree(operator: FunctionalOperator) -> None:
    record = operator.record
    assert repr(operator) == f"<backbind.ops.{operator.name}>"
    assert operator.schema.startswith(f"backbind::{operator.name}(")
    assert operator.overload is getattr(torch.ops.backbind, operator.name).default
    assert operator.mode == record.mode
    assert (operator.inputs, operator.outputs, operator.saved, operator.formulas) == (
        record.inputs,
        record.outputs,
        record.arguments,
        record.formulas,
    )
    assert str(operator.source) == f"derivatives.yaml:{record.line}"
    assert [name for name, _ in operator._arguments] == [one.name for one in operator.saved]  # type: ignore[attr-defined]
    assert operator.__name__ == operator.__qualname__ == operator.name  # type: ignore[attr-defined]
    assert operator.__module__ == "backbind.ops"


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_signature(operator: FunctionalOperator) -> None:
    signature = inspect.signature(operator)
    assert list(signature.parameters) == ["grads", "needs_input_grad", *(one.name for one in operator.saved)]
    assert [one.annotation for one in signature.parameters.values()] == [
        "Sequence[Tensor | None]",
        "Sequence[bool]",
        *(one.annotation for one in operator.saved),
    ]
    assert signature.return_annotation == "list[Tensor | None]"


def test_identity_equality_and_hash() -> None:
    first, second = backbind.ops.MulBackward0, backbind.ops.TanhBackward0
    assert first is backbind.ops.MulBackward0 is backbind.ops.get("MulBackward0")
    assert first == backbind.ops.get("MulBackward0") != second
    assert len({*OPERATORS, *OPERATORS}) == 711
    assert {first: 1}[backbind.ops.MulBackward0] == 1


def test_every_operator_is_a_functional_operator() -> None:
    assert all(isinstance(operator, FunctionalOperator) for operator in OPERATORS)
    assert not isinstance(torch.ops.backbind.MulBackward0, FunctionalOperator)
    assert not isinstance(torch.mul, FunctionalOperator)


def test_operators_are_callable_and_can_be_referred_to_weakly() -> None:
    assert callable(backbind.ops.MulBackward0)
    with pytest.raises(TypeError, match="cannot create weak reference"):
        weakref.ref(backbind.ops.MulBackward0)


def test_python_may_keep_things_with_an_operator() -> None:
    operator = backbind.ops.MulBackward0
    operator.note = "mine"  # type: ignore[attr-defined]
    assert operator.note == "mine"  # type: ignore[attr-defined]
    del operator.note  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        operator.name = "other"  # type: ignore[misc]


def test_a_module_that_holds_an_operator_copies_and_pickles() -> None:
    class Holder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.operator = backbind.ops.TanhBackward0

    holder = Holder()
    assert copy.deepcopy(holder).operator is backbind.ops.TanhBackward0
    state = pickle.loads(pickle.dumps(holder.__dict__))
    assert state["operator"] is backbind.ops.TanhBackward0


def test_collecting_garbage_leaves_operators_alone() -> None:
    before = [operator.overload for operator in OPERATORS]
    gc.collect()
    assert [operator.overload for operator in list(backbind.ops)] == before


def test_explicit_call() -> None:
    grad, result = torch.ones(2), torch.zeros(2)
    operator = backbind.ops.TanhBackward0
    (through_method,) = operator.__call__([grad], [True], result)
    (direct,) = operator([grad], [True], result)
    assert torch.equal(through_method, direct)  # type: ignore[arg-type]
    assert inspect.isfunction(type(operator).__call__)


def test_the_namespace_is_a_container() -> None:
    ops: Any = backbind.ops  # type checkers do not iterate over modules
    assert len(ops) == 711
    names = [operator.name for operator in ops]
    assert names == sorted(names)
    assert "MulBackward0" in ops
    assert ops.MulBackward0 in ops
    assert "mul" not in ops
    assert 7 not in ops
    assert [] not in ops
    assert set(dir(ops)) == {*names, "for_node", "get"}
    assert set(ops.__all__) == {*names, "for_node", "get"}
    assert all(getattr(ops, name) is ops.get(name) for name in names)
    scope: dict[str, object] = {}
    exec("from backbind.ops import *", scope)
    assert scope["MulBackward0"] is ops.MulBackward0


def test_for_node() -> None:
    x = torch.ones(2, requires_grad=True)
    assert backbind.ops.for_node((x * x).grad_fn) is backbind.ops.MulBackward0
    assert backbind.ops.for_node(torch._foreach_exp([x])[0].grad_fn) is backbind.ops.ForeachExpBackward0


@pytest.mark.parametrize("name", ["MulBackward0", "CatBackward0", "ForeachTanhBackward0"])
def test_help(name: str) -> None:
    operator = backbind.ops.get(name)
    text = pydoc.plain(pydoc.render_doc(operator))
    assert operator.__doc__ is not None
    for line in operator.__doc__.split("\n"):
        assert line.strip() in text
    assert operator.record.forward_schema in text
