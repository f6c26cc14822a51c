"""The helpers of csrc/formulas, through the operators whose formulas call them: traced, batched and differentiated in
every mode of the thread.

Inside a step of a captured backward a helper may take short cuts, because nobody sees what it calls. Outside of one it
may not, whatever keys the thread has left out: a graph that was traced then would hold what was seen of one tensor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import backbind
import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from tests.oracle.compare import tensor_difference

FLOAT = torch.float64
STRIDED = torch.strided

Sizes = Sequence[int]
Tracing = Literal["real", "symbolic"]


@dataclass(frozen=True)
class Helped:
    """An operator whose formulas call helpers."""

    operator: Any
    shapes: Callable[[int, int], Sequence[Sizes]]
    """Of the gradient and of the saved tensors, for two sizes."""
    arguments: Callable[..., Sequence[object]]
    """The saved values, of the two sizes and the saved tensors."""

    def call(
        self, way: Callable[..., Any], gradient: Tensor, sizes: tuple[int, int], saved: Sequence[Tensor]
    ) -> Any:
        mask = [True] * len(self.operator.inputs)
        return way([gradient], mask, *self.arguments(*sizes, *saved))

    def tensors(self, sizes: tuple[int, int], arrange: Callable[[Tensor], Tensor]) -> list[Tensor]:
        torch.manual_seed(3)
        return [arrange(torch.rand(tuple(shape), dtype=FLOAT) + 0.5) for shape in self.shapes(*sizes)]


def _matrices(first: str, second: str) -> Callable[..., Sequence[object]]:
    """What ``mm`` saves of an n x 3 and a 3 x m matrix that lay in memory by rows or by columns."""

    def facts(rows: int, columns: int, order: str) -> tuple[object, ...]:
        return STRIDED, [rows, columns], [columns, 1] if order == "rows" else [1, rows]

    return lambda n, m, a, b: (b, *facts(3, m, second), a, *facts(n, 3, first))


def _added_matrices(first: str, second: str) -> Callable[..., Sequence[object]]:
    def arguments(n: int, m: int, a: Tensor, b: Tensor) -> Sequence[object]:
        mat2, *facts2, mat1, layout, sizes, strides = _matrices(first, second)(n, m, a, b)
        return (2.0, 3.0, mat1, layout, sizes, strides, mat2, *facts2)

    return arguments


def _one(n: int, m: int) -> Sequence[Sizes]:
    return [(n, m)]


def _two(n: int, m: int) -> Sequence[Sizes]:
    return [(n, m), (n, m)]


def _three(n: int, m: int) -> Sequence[Sizes]:
    return [(n, m), (n, m), (n, m)]


def _products(n: int, m: int) -> Sequence[Sizes]:
    return [(n, m), (n, 3), (3, m)]


_ops = backbind.ops
HELPED = {
    "product": Helped(_ops.MulBackward0, _three, lambda n, m, a, b: (b, b.dtype, a, a.dtype)),
    "product with a number": Helped(_ops.MulBackward1, _one, lambda n, m: (2.5, FLOAT)),
    "quotient": Helped(_ops.DivBackward0, _three, lambda n, m, a, b: (b, a, a.dtype)),
    "quotient by a number": Helped(_ops.DivBackward1, _one, lambda n, m: (2.5, FLOAT)),
    "rounded quotient": Helped(_ops.DivBackward2, _three, lambda n, m, a, b: (b, "floor", a, a.dtype)),
    "rounded quotient by a number": Helped(_ops.DivBackward3, _one, lambda n, m: (2.5, "trunc", FLOAT)),
    "sum with a factor": Helped(_ops.AddBackward0, _one, lambda n, m: (2.5, FLOAT, FLOAT)),
    "power": Helped(_ops.PowBackward0, _two, lambda n, m, a: (3, a)),
    "power of zero": Helped(_ops.PowBackward0, _two, lambda n, m, a: (0.0, a)),
    "matrices": Helped(_ops.MmBackward0, _products, _matrices("rows", "rows")),
    "matrices, first by columns": Helped(_ops.MmBackward0, _products, _matrices("columns", "rows")),
    "matrices, second by columns": Helped(_ops.MmBackward0, _products, _matrices("rows", "columns")),
    "added matrices": Helped(_ops.AddmmBackward0, _products, _added_matrices("rows", "rows")),
    "added matrices by columns": Helped(
        _ops.AddmmBackward0, _products, _added_matrices("columns", "columns")
    ),
    "permute": Helped(_ops.PermuteBackward0, _one, lambda n, m: ([1, 0],)),
    "squeeze": Helped(_ops.SqueezeBackward0, _one, lambda n, m: ([n, 1, m],)),
    "squeeze of one dimension": Helped(_ops.SqueezeBackward1, _one, lambda n, m: (1, [n, 1, m])),
    "squeeze of named dimensions": Helped(_ops.SqueezeBackward2, _one, lambda n, m: ([0, 2], [1, n, 1, m])),
    "sum over a dimension": Helped(_ops.SumBackward1, _one, lambda n, m: ([1], False, [n, 4, m])),
    "sum over dimensions": Helped(_ops.SumBackward1, _one, lambda n, m: ([0, 2], False, [4, n, 5, m])),
}

MODES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "grad": torch.enable_grad,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "below autograd": torch._C._AutoDispatchBelowAutograd,
    "below views": lambda: torch._C._ExcludeDispatchKeyGuard(
        torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradCPU)
        | torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
    ),
}

TRACED_SIZES, OTHER_SIZES = (6, 7), (8, 9)


def _by_rows(tensor: Tensor) -> Tensor:
    return tensor


def _by_columns(tensor: Tensor) -> Tensor:
    return tensor.mT.contiguous().mT


def _in_steps(tensor: Tensor) -> Tensor:
    spread = tensor.new_zeros(*tensor.shape[:-1], tensor.shape[-1] * 2)
    spread[..., ::2] = tensor
    return spread[..., ::2]


ARRANGEMENTS = {"rows": _by_rows, "columns": _by_columns, "steps": _in_steps}
"""The ways in which a tensor may lie in memory; the first is that of the tensors of a trace."""


def _assert_as_delegate(
    helped: Helped, sizes: tuple[int, int], tensors: Sequence[Tensor], actual: Any
) -> None:
    expected = helped.call(helped.operator.delegate, tensors[0], sizes, tensors[1:])
    found = [
        tensor_difference(
            None if left is None else left.contiguous(),
            None if right is None else right.detach().contiguous(),
        )
        for left, right in zip(expected, actual, strict=True)
    ]
    assert not any(found), found


@pytest.mark.parametrize("tracing", get_args(Tracing))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", HELPED)
def test_a_trace_holds_for_other_tensors(name: str, mode: str, tracing: Tracing) -> None:
    helped = HELPED[name]

    def traced(gradient: Tensor, *saved: Tensor) -> Any:
        sizes = TRACED_SIZES if tracing == "real" else tuple(gradient.shape)
        return helped.call(helped.operator, gradient, sizes, saved)  # type: ignore[arg-type]

    with MODES[mode]():
        graph = make_fx(traced, tracing_mode=tracing)(*helped.tensors(TRACED_SIZES, _by_rows))
    for sizes in [TRACED_SIZES] if tracing == "real" else [TRACED_SIZES, OTHER_SIZES]:
        for arrange in ARRANGEMENTS.values():
            tensors = helped.tensors(sizes, arrange)
            for surround in (contextlib.nullcontext, MODES[mode]):
                with surround():
                    actual = graph(*tensors)
                _assert_as_delegate(helped, sizes, tensors, actual)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", HELPED)
def test_called_as_it_is(name: str, mode: str) -> None:
    helped = HELPED[name]
    for arrange in ARRANGEMENTS.values():
        tensors = helped.tensors(TRACED_SIZES, arrange)
        with MODES[mode]():
            actual = helped.call(helped.operator, tensors[0], TRACED_SIZES, tensors[1:])
        _assert_as_delegate(helped, TRACED_SIZES, tensors, actual)


@pytest.mark.parametrize("mode", [mode for mode in MODES if not mode.startswith("below")])
@pytest.mark.parametrize("name", HELPED)
def test_a_batch_is_its_samples(name: str, mode: str) -> None:
    helped = HELPED[name]
    for arrange in ARRANGEMENTS.values():
        tensors = helped.tensors(TRACED_SIZES, arrange)
        batches = [torch.stack([tensor, tensor + 1, tensor * 2]) for tensor in tensors]

        def call(gradient: Tensor, *saved: Tensor) -> Any:
            results = helped.call(helped.operator, gradient, TRACED_SIZES, saved)
            return tuple(result for result in results if result is not None)

        with MODES[mode]():
            actual = torch.func.vmap(call)(*batches)
        for i in range(3):
            samples = [batch[i] for batch in batches]
            expected = helped.call(helped.operator.delegate, samples[0], TRACED_SIZES, samples[1:])
            defined = [one for one in expected if one is not None]
            for left, right in zip(defined, actual, strict=True):
                torch.testing.assert_close(right[i], left, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", HELPED)
def test_differentiated_again(name: str) -> None:
    helped = HELPED[name]
    for arrange in ARRANGEMENTS.values():
        found: list[list[Tensor | None]] = []
        for way in (helped.operator.delegate, helped.operator):
            tensors = [tensor.detach().requires_grad_() for tensor in helped.tensors(TRACED_SIZES, arrange)]
            results = [
                one for one in helped.call(way, tensors[0], TRACED_SIZES, tensors[1:]) if one is not None
            ]
            total = sum((one.square().sum() for one in results), start=torch.zeros((), dtype=FLOAT))
            found.append(
                list(torch.autograd.grad(total, tensors, allow_unused=True))
                if total.requires_grad
                else [None] * len(tensors)
            )
        expected, actual = found
        differences = [tensor_difference(left, right) for left, right in zip(expected, actual, strict=True)]
        assert not any(differences), differences
