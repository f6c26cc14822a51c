# mypy: disable-error-code="empty-body"
"""Calls for a type checker to judge: those marked with an error are wrong, the others right. Never run."""

from collections.abc import Sequence
from typing import assert_type

import backbind
import torch
from backbind._operator import FunctionalOperator
from torch import Tensor


def right(grad: Tensor, x: Tensor, size: torch.SymInt, node: object) -> None:
    ops = backbind.ops
    assert_type(ops.TanhBackward0([grad], [True], x), list[Tensor | None])
    assert_type(ops.TanhBackward0([None], (True,), None), list[Tensor | None])
    assert_type(ops.TanhBackward0(grads=[grad], needs_input_grad=[True], result=x), list[Tensor | None])
    ops.MulBackward0([grad], [True, False], x, torch.float32, None, torch.float64)
    ops.ViewBackward0([grad], [True], x.shape)
    ops.ViewBackward0([grad], [True], [size, 2])
    ops.ViewBackward0([grad], [True], range(3))
    ops.PowBackward0([grad], [True], 2, x)
    ops.PowBackward0([grad], [True], 2j, x)
    ops.SumBackward1([grad], [True], None, False, [2])
    ops.ForeachTanhBackward0([grad, None], [True], [x, x], 2)
    assert_type(ops.for_node(node), FunctionalOperator)
    assert_type(ops.get("MulBackward0"), FunctionalOperator)
    assert_type(backbind.pack(node), tuple[object, ...])
    assert_type(ops.MulBackward0.schema, str)
    assert_type(ops.MulBackward0.inputs, tuple[str, ...])
    as_protocol: FunctionalOperator = ops.MulBackward0
    gradients: Sequence[Tensor | None] = as_protocol([grad], [True, True], x, torch.float32, x, torch.float32)
    del gradients


def wrong(grad: Tensor, x: Tensor) -> None:
    ops = backbind.ops
    ops.TanhBackward0([grad], [True])  # error: call-arg
    ops.TanhBackward0([grad], [True], x, x)  # error: call-arg
    ops.TanhBackward0([grad], [True], reslut=x)  # error: call-arg
    ops.TanhBackward0(grad, True, x)  # error: arg-type
    ops.TanhBackward0([1], [True], x)  # error: list-item
    ops.MulBackward0([grad], [True, True], x, 6, x, torch.float32)  # error: arg-type
    ops.ViewBackward0([grad], [True], 3)  # error: arg-type
    ops.GeluBackward0([grad], [True], b"none", x)  # error: arg-type
    ops.MulBackwrd0([grad], [True])  # error: attr-defined
    ops.MulBackward0.name = "other"  # error: misc
