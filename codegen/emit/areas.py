"""Sorts operators into areas: each has a page of the reference, a module of records, and one of stubs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .. import names
from ..model.node import NodeSpec


@dataclass(frozen=True)
class Area:
    """Operators that people look for in one place."""

    name: str
    """``linear-algebra``"""
    title: str
    """``Linear algebra``"""
    pattern: str
    """Over the beginning of the forward operator's name."""


AREAS = (
    Area("foreach", "Lists of tensors", r"_foreach_"),
    Area(
        "linear-algebra",
        "Linear algebra",
        r"_?linalg_|.*(mm|mv|dot|cholesky|lu_|qr|svd|eig|triangular|householder)",
    ),
    Area("fourier", "Fourier transforms", r"_?fft|.*stft"),
    Area("convolution", "Convolution", r".*conv|.*im2col|col2im"),
    Area("attention", "Attention", r".*attention|.*_mha|.*transformer"),
    Area("recurrent", "Recurrent cells", r".*(rnn|lstm|gru)"),
    Area(
        "normalization",
        "Normalization and dropout",
        r".*(batch_norm|layer_norm|group_norm|rms_norm|dropout|weight_norm)",
    ),
    Area("pooling", "Pooling and resampling", r".*(pool|upsample|grid_sampler|pixel|affine_grid)"),
    Area("loss", "Losses", r".*(_loss|entropy|kl_div|smooth_l1)"),
    Area(
        "activation",
        "Activations",
        r".*(relu|elu|gelu|silu|mish|sigmoid|tanh|softmax|softplus|softshrink|hard|glu|threshold)",
    ),
    Area("embedding", "Embeddings", r".*embedding"),
    Area("sparse", "Sparse tensors", r".*(sparse|coalesce)|_?values|_?indices"),
    Area("nested", "Nested tensors", r".*nested|.*jagged"),
    Area(
        "random",
        "Random numbers",
        r".*(bernoulli|normal|exponential|cauchy|uniform|geometric|random|multinomial|poisson|dirichlet|gamma$)",
    ),
    Area("special-functions", "Special functions", r"special_|.*(erf|gamma|bessel|zeta|i0|i1)"),
    Area(
        "shapes",
        "Shapes and views",
        r"_?(view|reshape|expand|permute|transpose|squeeze|unsqueeze|slice|select|split|chunk|unbind|narrow|as_strided|"
        r"unfold|diagonal|flip|roll|rot90|alias|cat|stack|repeat|unsafe_|pad|constant_pad|reflection|replication|"
        r"movedim|t$|t\.|block_diag|detach|lift|swap)",
    ),
    Area(
        "indexing",
        "Indexing and selection",
        r".*(index|gather|scatter|take|put|masked|where|sort|topk|kthvalue|mode|median)",
    ),
    Area(
        "reductions",
        "Reductions and scans",
        r"(sum|mean|prod|std|var|norm|max|min|amax|amin|aminmax|logsumexp|cum|nan|all|any|logcumsumexp|dist|trace|renorm)",
    ),
    Area("quantization", "Quantization", r".*quant"),
    Area("elementwise", "Elementwise and other operators", ""),
)
"""The first whose pattern matches is taken; the last one takes the rest."""


def area_of(operator: str) -> Area:
    """The area of an operator.

    >>> area_of("_foreach_add.List").name, area_of("mul.Tensor").name
    ('foreach', 'elementwise')
    """
    return next(area for area in AREAS if re.match(area.pattern, operator))


def split_into_areas(nodes: Iterable[NodeSpec]) -> list[tuple[Area, list[NodeSpec]]]:
    """Nodes by area, in the order of `AREAS`; without areas that have none."""
    by_area: dict[Area, list[NodeSpec]] = {area: [] for area in AREAS}
    for node in nodes:
        by_area[area_of(node.operator)].append(node)
    return [(area, members) for area, members in by_area.items() if members]


def modules_by_node(nodes: Iterable[NodeSpec]) -> list[tuple[str, str]]:
    """Each node's name with the module of its area."""
    return [(node.name, names.area_module(area_of(node.operator).name)) for node in nodes]
