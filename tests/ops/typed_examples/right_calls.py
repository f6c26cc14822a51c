"""Calls that a type checker must accept, and the types that it must find. Every function also runs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import assert_type

import backbind
import torch
from backbind import ops
from backbind._operator import FunctionalOperator
from backbind._records import ArgumentRecord, FormulaRecord, Source
from torch import Tensor

T = torch.ones(3)


def by_position() -> None:
    result = ops.MulBackward0([T], [True, True], T, torch.float32, T, torch.float32)
    assert_type(result, list[Tensor | None])


def by_keyword() -> None:
    ops.TanhBackward0(result=T, needs_input_grad=[True], grads=[T])


def an_argument_of_the_forward_called_self() -> None:
    ops.AbsBackward0([T], [True], self=T)


def tuples_are_sequences() -> None:
    ops.TanhBackward0((T,), (True,), T)


def undefined_gradients() -> None:
    grads: list[Tensor | None] = [None]
    ops.TanhBackward0(grads, [True], T)
    ops.TanhBackward0([None], [False], None)


def sizes() -> None:
    ops.SumBackward0([T[0]], [True], T.shape)
    ops.SumBackward1([T[0]], [True], None, False, [3])
    ops.ViewBackward0([T], [True], [T.shape[0]])
    ops.SliceBackward0([T], [True], 0, None, T.shape, None, 1)


def numbers() -> None:
    for number in (2, 2.0, True):
        ops.AddBackward0([T], [True, True], number, torch.float32, torch.float32)
    ops.AddBackward0([T.to(torch.complex64)], [True, True], 2j, torch.complex64, torch.complex64)


def lists_of_tensors() -> None:
    tensors: Sequence[Tensor] = (T, T)
    ops.ForeachTanhBackward0(tensors, [True], [T, T], 2)


def of_live_nodes() -> None:
    x = torch.ones(3, requires_grad=True)
    node = x.tanh().grad_fn
    operator = ops.for_node(node)
    assert_type(operator, FunctionalOperator)
    packed = backbind.pack(node)
    assert_type(packed, tuple[object, ...])
    assert_type(operator([T], *packed), list[Tensor | None])


def describing() -> None:
    operator = ops.MulBackward0
    assert_type(operator.name, str)
    assert_type(operator.schema, str)
    assert_type(operator.mode, str)
    assert_type(operator.overload, torch._ops.OpOverload)
    assert_type(operator.inputs, tuple[str, ...])
    assert_type(operator.outputs, tuple[str, ...])
    assert_type(operator.saved, tuple[ArgumentRecord, ...])
    assert_type(operator.formulas, tuple[FormulaRecord, ...])
    assert_type(operator.source, Source)
    assert_type(operator.delegate([T], [True, True], T, torch.float32, T, torch.float32), list[Tensor | None])


def as_a_functional_operator() -> None:
    operators: list[FunctionalOperator] = [ops.MulBackward0, ops.TanhBackward0, ops.get("AbsBackward0")]
    assert all(isinstance(operator, FunctionalOperator) for operator in operators)


def as_a_container() -> None:
    assert_type(len(ops), int)
    assert_type(next(iter(ops)), FunctionalOperator)
    names: Container[object] = ops
    operators: Iterable[FunctionalOperator] = ops
    # mypy lets a module be a container, yet knows no statements and operators for it.
    assert "MulBackward0" in ops  # type: ignore[attr-defined]
    assert "MulBackward0" in names
    assert [one.name for one in operators] == [one.name for one in ops]  # type: ignore[attr-defined]


FUNCTIONS = (
    by_position,
    by_keyword,
    an_argument_of_the_forward_called_self,
    tuples_are_sequences,
    undefined_gradients,
    sizes,
    numbers,
    lists_of_tensors,
    of_live_nodes,
    describing,
    as_a_functional_operator,
    as_a_container,
)
