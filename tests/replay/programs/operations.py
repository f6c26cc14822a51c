"""The operations of programs, by name. To be read as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch.nn import functional

from tests.oracle.adversarial import special_values
from tests.replay.programs import functions
from tests.replay.programs.functions import apply
from tests.replay.programs.observations import Log

WIDTH = 4
"""All values are matrices of so many columns; the number of rows is that of the step."""


@dataclass(frozen=True)
class Context:
    """What operations need beside values."""

    log: Log
    matrix: torch.Tensor
    """Leaves that do not change their size: WIDTH x WIDTH."""
    transposed: torch.Tensor
    """As `matrix`, but not contiguous."""
    vector: torch.Tensor
    scalar: torch.Tensor


Tensor: TypeAlias = torch.Tensor
Operation: TypeAlias = Callable[[Context, Tensor, Tensor], Tensor | tuple[Tensor, ...]]


def _write_to_view(c: Context, a: Tensor, b: Tensor) -> Tensor:
    whole = a * 1.5
    whole[:, 1:3].mul_(b[:, :2])
    return whole


def _views_written_to(c: Context, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    whole = torch.cat([a, b], 1)
    left, right = whole[:, :WIDTH], whole[:, WIDTH:]
    left.mul_(b)
    right.add_(left)
    return left, right


def _view_of_base_written_to(c: Context, a: Tensor, b: Tensor) -> Tensor:
    """The node of the view is made anew when it is asked for, after nodes that use its gradient's way were made."""
    whole = a * 1.5
    view = whole[:, ::2]
    whole.mul_(b)
    return view.repeat(1, 2) * whole


def _base_written_to_through_columns(c: Context, a: Tensor, b: Tensor) -> Tensor:
    whole = a * 1
    first = whole[..., 0]
    whole[..., 1] += b[..., 0]
    whole[..., 0] += first * 2
    return whole + first.unsqueeze(-1)


def _with_infinities(c: Context, a: Tensor, b: Tensor) -> Tensor:
    special = special_values(a.dtype, a.numel(), 1).view(a.shape)
    return torch.where(b > 0, a * special, a)


def _complex_one(c: Context, a: Tensor, b: Tensor) -> Tensor:
    pairs = torch.complex(a, b)
    return (torch.add(pairs * (1 + 0j), pairs.conj(), alpha=1 + 0j) - pairs.pow(1)).imag


def _complex_infinities(c: Context, a: Tensor, b: Tensor) -> Tensor:
    special = special_values(torch.complex128, a.numel(), 2).view(a.shape)
    return (torch.complex(a, b) * special + torch.complex(b, a)).real


def _split(c: Context, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    first, second, third = torch.cat([a, b, a], 1).split(WIDTH, 1)
    return first, second, third


def _write_to_split(c: Context, a: Tensor, b: Tensor) -> Tensor:
    left, right = torch.cat([a, b], 1).unsafe_split(WIDTH, 1)
    return left.mul_(2) * right


def _complex(c: Context, a: Tensor, b: Tensor) -> Tensor:
    product = torch.complex(a, b) * torch.complex(b, a).conj()
    return product.imag + product.abs()


def _conjugate_views(c: Context, a: Tensor, b: Tensor) -> Tensor:
    pairs = torch.view_as_complex(a.reshape(-1, 2, 2))
    return torch.view_as_real((pairs.conj() @ pairs.new_ones(2, 2)).resolve_conj()).reshape(-1, WIDTH)


def _embedding(c: Context, a: Tensor, b: Tensor) -> Tensor:
    return functional.embedding(torch.arange(a.shape[0]) % WIDTH, c.matrix, sparse=True) * a


def _dense_embedding(c: Context, a: Tensor, b: Tensor) -> Tensor:
    return functional.embedding(torch.arange(a.shape[0]) % WIDTH, c.matrix) * a


def _index_put(c: Context, a: Tensor, b: Tensor) -> Tensor:
    copy = a.clone()
    copy[:, torch.tensor([0, 2])] = b[:, 1:3]
    return copy


def _accumulating_index_put(c: Context, a: Tensor, b: Tensor) -> Tensor:
    return a.index_put((torch.zeros(3, dtype=torch.long),), b.new_ones(3, WIDTH), accumulate=True)


def _in_place_function(c: Context, a: Tensor, b: Tensor) -> Tensor:
    result: Tensor = apply(functions.InPlace, c.log, a * b)
    return result


def _function_on_view(c: Context, a: Tensor, b: Tensor) -> Tensor:
    result: Tensor = apply(functions.InPlace, c.log, torch.cat([a, b], 1)[:, 1 : WIDTH + 1])
    return result


OPERATIONS: dict[str, Operation] = {
    # elementwise
    "add": lambda c, a, b: a + b,
    "sub": lambda c, a, b: a - b,
    "mul": lambda c, a, b: a * b,
    "div": lambda c, a, b: a / (b.abs() + 1),
    "square": lambda c, a, b: a * a,
    "tanh": lambda c, a, b: torch.tanh(a),
    "gelu": lambda c, a, b: functional.gelu(a),
    "where": lambda c, a, b: torch.where(a > 0, a, b),
    "lerp": lambda c, a, b: torch.lerp(a, b, 0.3),
    "dropout": lambda c, a, b: functional.dropout(a, 0.5),
    "float and back": lambda c, a, b: a.float().sin().double(),
    # with leaves
    "times matrix": lambda c, a, b: a @ c.matrix,
    "linear": lambda c, a, b: functional.linear(a, c.matrix, c.vector),
    "times transposed": lambda c, a, b: a @ c.transposed,
    "add transposed row": lambda c, a, b: a + c.transposed[1],
    "add vector": lambda c, a, b: a + c.vector,
    "times vector": lambda c, a, b: a * c.vector,
    "times scalar": lambda c, a, b: a * c.scalar,
    "add scalar": lambda c, a, b: a + c.scalar,
    "layer norm": lambda c, a, b: functional.layer_norm(a, (WIDTH,), c.vector, c.vector),
    "embedding": _dense_embedding,
    "sparse embedding": _embedding,
    "outer": lambda c, a, b: a * c.vector.outer(c.vector).diagonal(),
    # matrices and reductions
    "attention": lambda c, a, b: (a @ b.mT).softmax(-1) @ b,
    "minus mean": lambda c, a, b: a - b.mean(0, keepdim=True),
    "times sum": lambda c, a, b: a * b.sum(),
    "maximum of two": lambda c, a, b: torch.stack([a, b]).max(0).values,
    "sorted": lambda c, a, b: a.sort(1).values,
    "std": lambda c, a, b: a * b.std(1, keepdim=True),
    "logsumexp": lambda c, a, b: a - b.logsumexp(1, keepdim=True),
    "cumsum": lambda c, a, b: a.cumsum(1),
    # views, pieces
    "alias": lambda c, a, b: a.view_as(a),
    "view": lambda c, a, b: a.reshape(-1, 2, 2).mT.flatten(1),
    "expand": lambda c, a, b: a[:, :1].expand(-1, WIDTH),
    "narrow": lambda c, a, b: a[:, 1:2] * b,
    "index": lambda c, a, b: a[:, torch.tensor([3, 0, 1, 1])],
    "flip": lambda c, a, b: a.flip(0),
    "cat": lambda c, a, b: torch.cat([a[:, 2:], b[:, :2]], 1),
    "split": _split,
    "unbind": lambda c, a, b: torch.stack([a, b]).unbind(0),
    "chunks": lambda c, a, b: torch.cat([a, b], 1).chunk(2, 1),
    "contiguous": lambda c, a, b: a.mT.contiguous().mT,
    # in place
    "in place": lambda c, a, b: (a * 1.5).add_(b).clamp_(-3, 3),
    "in place on a value": lambda c, a, b: a.mul_(2),
    "add in place to a value": lambda c, a, b: a.add_(b),
    "in place on a view": _write_to_view,
    "in place on two views": _views_written_to,
    "in place on a split": _write_to_split,
    "in place on a view of a value": lambda c, a, b: a[:, ::2].mul_(2)[:, :1] * b,
    "put": _index_put,
    "put, accumulated": _accumulating_index_put,
    "view of a base written to": _view_of_base_written_to,
    "columns written to": _base_written_to_through_columns,
    "copy": lambda c, a, b: torch.zeros_like(a).copy_(b),
    "fill": lambda c, a, b: a.clone().fill_(c.scalar),
    # the rest
    "complex": _complex,
    "conjugate views": _conjugate_views,
    "complex one": _complex_one,
    "complex infinities": _complex_infinities,
    "infinities": _with_infinities,
    "detach": lambda c, a, b: a.detach(),
    "clone": lambda c, a, b: a.clone(),
    "constant": lambda c, a, b: torch.ones_like(a),
    "function of two": lambda c, a, b: apply(functions.Twice, c.log, a, b),
    "materialized function": lambda c, a, b: apply(functions.Materialized, c.log, a, b),
    "function in place": _in_place_function,
    "function in place on a view": _function_on_view,
    "no gradient": lambda c, a, b: apply(functions.NoGradient, c.log, a),
    "other dtype": lambda c, a, b: apply(functions.OtherDtype, c.log, c.vector, a),
    "inner backward": lambda c, a, b: apply(functions.WithInnerBackward, c.log, a),
    "inner backward into leaves": lambda c, a, b: apply(
        functions.WithInnerBackwardIntoLeaves, c.log, a, c.vector, c.matrix, c.scalar
    ),
}

RARE: dict[str, Operation] = {
    "fails": lambda c, a, b: apply(functions.Fails, c.log, a),
}
"""Drawn seldom, because nothing is compared behind them."""

ALL = OPERATIONS | RARE
