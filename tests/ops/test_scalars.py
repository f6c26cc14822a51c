"""Operators with numbers among their saved values, over all kinds of numbers and over tensors with every special value.

The delegate is the reference: a factor that changes nothing in arithmetic may still change bits, or the dtype.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor

from tests.oracle.compare import tensor_difference

INF, NAN = float("inf"), float("nan")

NUMBERS: list[Any] = [
    *(0, 1, -1, 2, 3, -2, 2**31, 2**53 + 1, 2**62, -(2**62), -(2**63), 2**63 - 1),
    *(True, False),
    *(0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1.5, 1e308, 5e-324, INF, -INF, NAN),
    *(
        1 + 0j,
        0j,
        1j,
        -1 + 0j,
        2 - 3j,
        complex(1, -0.0),
        complex(-0.0, 0.0),
        complex(INF, 0),
        complex(0, NAN),
    ),
]
DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.complex64,
    torch.complex128,
    torch.int64,
    torch.int32,
    torch.bool,
)
_PARTS = (0.0, -0.0, 1.0, -1.0, 2.5, -3.0, INF, -INF, NAN, 1e-310, 1e-41, -1e-41)


def special_values(dtype: torch.dtype) -> Tensor:
    """Twelve rows of twelve."""
    if dtype.is_complex:
        values = torch.tensor([[complex(a, b) for b in _PARTS] for a in _PARTS], dtype=torch.complex128)
    elif dtype.is_floating_point:
        values = torch.tensor([list(_PARTS)] * 12, dtype=torch.float64)
    else:
        values = torch.arange(-70, 74).reshape(12, 12)
    return values.to(dtype)


Call = Callable[[Any, torch.dtype, Tensor], Sequence[object]]


def _added_matrices(number: Any, dtype: torch.dtype, x: Tensor) -> Sequence[object]:
    sizes, strides = [12, 12], [12, 1]
    return number, number, x, torch.strided, sizes, strides, x, torch.strided, sizes, strides


_ops = backbind.ops
CALLS: dict[str, tuple[Any, Call]] = {
    "AddBackward0": (_ops.AddBackward0, lambda s, d, x: (s, d, d)),
    "SubBackward0": (_ops.SubBackward0, lambda s, d, x: (s, d, d)),
    "RsubBackward0": (_ops.RsubBackward0, lambda s, d, x: (s, d, d)),
    "RsubBackward1": (_ops.RsubBackward1, lambda s, d, x: (s, d)),
    "MulBackward1": (_ops.MulBackward1, lambda s, d, x: (s, d)),
    "DivBackward1": (_ops.DivBackward1, lambda s, d, x: (s, d)),
    "DivBackward3": (_ops.DivBackward3, lambda s, d, x: (s, None, d)),
    "DivBackward3, rounded": (_ops.DivBackward3, lambda s, d, x: (s, "floor", d)),
    "PowBackward0": (_ops.PowBackward0, lambda s, d, x: (s, x)),
    "AddmmBackward0": (_ops.AddmmBackward0, _added_matrices),
    "AddmvBackward0": (_ops.AddmvBackward0, lambda s, d, x: (s, s, x, x[0])),
    "AddrBackward0": (_ops.AddrBackward0, lambda s, d, x: (s, s, x[0], x[1])),
    "BaddbmmBackward0": (_ops.BaddbmmBackward0, lambda s, d, x: (s, x[None], x[None], s)),
    "AddbmmBackward0": (_ops.AddbmmBackward0, lambda s, d, x: (s, x[None], 1, 12, x[None], 12, s)),
}
GRADIENT_OF: dict[str, Callable[[Tensor], Tensor]] = {
    "AddmvBackward0": lambda x: x[0],
    "BaddbmmBackward0": lambda x: x[None],
}


def _outcome(call: Callable[[], list[Tensor | None]]) -> list[Tensor | None] | tuple[str, str]:
    try:
        return call()
    except Exception as error:  # what a delegate refuses, the formulas refuse in its words
        return type(error).__name__, str(error)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_every_number(name: str, dtype: torch.dtype) -> None:
    operator, arguments = CALLS[name]
    x = special_values(dtype)
    problems = []
    for number in NUMBERS:
        for gradient in (x, x.flip(0), x.flip(1), x.new_ones(x.shape)):
            shaped = GRADIENT_OF.get(name)
            grad = gradient if shaped is None else shaped(gradient)
            mask = [True] * len(operator.inputs)
            values = [grad], mask, *arguments(number, dtype, x)
            found = [_outcome(functools.partial(way, *values)) for way in (operator.delegate, operator)]
            expected, actual = found
            if isinstance(expected, tuple) or isinstance(actual, tuple):
                problems += [f"{number!r}: {expected}, {actual}"] * (expected != actual)
                continue
            for left, right in zip(expected, actual, strict=True):
                difference = tensor_difference(left, right)
                problems += [f"{number!r}: {difference}"] * bool(difference)
                # A gradient that is handed on as it is stays the tensor that came.
                if left is not None and right is not None and (left is grad) != (right is grad):
                    problems.append(
                        f"{number!r}: expected {left is grad}, got {right is grad}: the tensor itself"
                    )
    assert not problems, "\n".join(problems[:10])
