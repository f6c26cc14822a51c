"""Sizes stay symbols on their way through pack and operators while a graph is traced with dynamic shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from codegen.model.saved_types import SAVED_TYPES
from tests.ivalue.modes import inside
from tests.ops.node_set import all_same_bits


@dataclass(frozen=True)
class Symbolic:
    """A forward of a leaf with sizes (n, 4) whose node keeps something made of n."""

    row: str
    node: str
    arguments: tuple[str, ...]
    """Those that hold symbols."""
    forward: Callable[[Tensor], Any]

    def __str__(self) -> str:
        return f"{self.row} in {self.node}"


_CASES = (
    Symbolic("sym_int", "MeanBackward0", ("self_sym_numel",), torch.mean),
    Symbolic("sym_int", "SelectBackward0", ("index",), lambda x: x.select(0, x.shape[0] - 1)),
    Symbolic("optional_sym_int", "SliceBackward0", ("end",), lambda x: x[: x.shape[0] - 1]),
    Symbolic("sym_int_list", "ViewBackward0", ("self_sym_sizes",), lambda x: x.view(-1)),
    Symbolic("sym_int_list", "RepeatBackward0", ("repeats",), lambda x: x.repeat(x.shape[0], 1)),
    Symbolic(
        "optional_sym_int_list",
        "ConvolutionBackward0",
        ("bias_sym_sizes_opt",),
        lambda x: torch.conv1d(
            x.new_ones(1, 4, 5), x.unsqueeze(-1), x.new_ones(x.shape[0], requires_grad=True)
        ),
    ),
    Symbolic("scalar", "MulBackward1", ("other",), lambda x: torch.ops.aten.mul.Scalar(x, x.shape[0])),
    Symbolic(
        "optional_scalar",
        "ClampBackward1",
        ("max",),
        lambda x: torch.ops.aten.clamp.default(x, None, x.shape[0]),
    ),
    Symbolic("type_and_size", "CopysignBackward0", ("other_info_sizes",), lambda x: torch.copysign(x * 2, x)),
    Symbolic(
        "tensor_geometry",
        "AsStridedScatterBackward0",
        ("self_geometry_sizes",),
        lambda x: torch.as_strided_scatter(x, x[0], (4,), (1,), 0),
    ),
    Symbolic(
        "sym_int_lists",
        "CatBackward0",
        ("tensors_args_sizes_symint_values",),
        lambda x: torch.cat([x, x * 2]),
    ),
)


def test_every_row_that_holds_symbols_is_covered() -> None:
    holding = {row.key for row in SAVED_TYPES if any("SymInt" in one.schema for one in row.components)}
    assert holding <= {case.row for case in _CASES}


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_symbols_travel(case: Symbolic) -> None:
    kept: dict[str, Any] = {}

    def run(leaf: Tensor, seed: Tensor) -> list[Tensor | None]:
        leaf = leaf.detach().requires_grad_()
        output = case.forward(leaf)
        operator = backbind.ops.for_node(output.grad_fn)
        assert operator.name == case.node
        packed = backbind.pack(output.grad_fn)
        kept.update(zip((one.name for one in operator.saved), packed[1:], strict=True))
        return operator([output.detach() * seed], *packed)

    seed = torch.full((), 3.0, dtype=torch.float64)
    graph = make_fx(run, tracing_mode="symbolic")(_leaf(5), seed)
    for name in case.arguments:
        assert any(isinstance(one, torch.SymInt) for one in inside([kept[name]])), f"{name} is {kept[name]!r}"
    for size in (5, 7, 3):
        assert _same(graph(_leaf(size), seed), run(_leaf(size), seed))
        for name in case.arguments:
            assert all(type(one) is int for one in inside([kept[name]])), f"{name} is {kept[name]!r}"


def _leaf(size: int) -> Tensor:
    return torch.randn(size, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(size))


def _same(left: Sequence[Tensor | None], right: Sequence[Tensor | None]) -> bool:
    return all_same_bits(list(left), list(right))
