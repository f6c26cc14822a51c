"""Compiled once, an operator serves every size: saved sizes that are sizes of tensors stay symbols all the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import backbind
import pytest
import torch
from torch import Tensor
from torch._inductor import config as inductor_config
from torch.fx.experimental.proxy_tensor import make_fx

from tests.conftest import REPOSITORY
from tests.ops.node_set import all_same_bits
from tests.processes import run_python


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    with inductor_config.patch(compile_threads=1):
        yield
    torch._dynamo.reset()


def sized_backwards() -> dict[str, Callable[[Tensor, Tensor], list[Tensor | None]]]:
    """Calls whose saved sizes are sizes of their tensors, so that they are symbols where shapes are."""
    ops = backbind.ops
    return {
        "sum": lambda grad, x: ops.SumBackward1([grad[:, 0]], [True], [1], False, list(x.shape)),
        "view": lambda grad, x: ops.ViewBackward0([grad.reshape(-1)], [True], list(x.shape)),
        "slice": lambda grad, x: ops.SliceBackward0([grad[:, 1:]], [True], 1, x.shape[1], [*x.shape], 1, 1),
        "expand": lambda grad, x: ops.ExpandBackward0([grad], [True], [1, x.shape[1]]),
        "select": lambda grad, x: ops.SelectBackward0([grad[0]], [True], 0, 0, [x.shape[0], x.shape[1]]),
        "cat": lambda grad, x: ops.CatBackward0(
            [grad], [True], 1, [x.dtype, x.dtype], [x.shape[0], 1, x.shape[0], x.shape[1] - 1], [2, 2], 2
        ),
        "mm": lambda grad, x: ops.MmBackward0(
            [grad.mm(grad.t())],
            [True, True],
            x.t(),
            torch.strided,
            [x.shape[1], x.shape[0]],
            [1, x.shape[1]],
            x,
            torch.strided,
            list(x.shape),
            [x.shape[1], 1],
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", sized_backwards())
def test_one_compilation_serves_every_size(name: str, backend: str) -> None:
    call = sized_backwards()[name]
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend=backend)
    for rows, columns in ((3, 4), (5, 6), (7, 11)):
        grad, x = torch.randn(2, rows, columns, dtype=torch.float64)
        with torch.compiler.set_stance("fail_on_recompile" if rows > 3 else "default"):
            actual = compiled(grad, x)
        for ours, theirs in zip(actual, call(grad, x), strict=True):
            if ours is None or theirs is None:
                assert ours is theirs
            else:
                torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", sized_backwards())
def test_symbolic_sizes_outside_of_dynamo(name: str) -> None:
    call = sized_backwards()[name]
    grad, x = torch.randn(2, 3, 4, dtype=torch.float64)
    traced = make_fx(call, tracing_mode="symbolic")(grad, x)
    assert all_same_bits(traced(grad, x), call(grad, x))


def test_looking_an_operator_up_in_a_compiled_region() -> None:
    def backward(grad: Tensor, result: Tensor) -> list[Tensor | None]:
        return backbind.ops.get("TanhBackward0")([grad], [True], result)

    grad, result = torch.randn(2, 3)
    compiled = torch.compile(backward, fullgraph=True, backend="eager")
    assert all_same_bits(compiled(grad, result), backward(grad, result))


def test_importing_backbind_does_not_import_the_compiler() -> None:
    code = "import sys, backbind; sys.exit('torch._dynamo' in sys.modules)"
    run_python("-c", code, env={"PYTHONPATH": str(REPOSITORY / "runtime")})
