"""Strategies for what saved values may be: the ends of every range and what is easily lost on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from torch import Tensor

T = TypeVar("T")

INT64 = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, -1, 2**31, -(2**31) - 1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]),
)
"""What `int` and `SymInt` hold; below -2**62 a SymInt keeps its number elsewhere."""
FLOATS = st.one_of(
    st.floats(),
    st.sampled_from(
        [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1.7976931348623157e308, 0.1]
    ),
)
COMPLEX = st.builds(complex, FLOATS, FLOATS)
NUMBERS = st.one_of(st.booleans(), INT64, FLOATS, COMPLEX)
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(["", "none", "tanh", "ß∂", "\0", "a\0b", "日本", "🙂", "x" * 300]),
)
SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def lists_of(strategy: SearchStrategy[T], min_size: int = 0) -> SearchStrategy[list[T]]:
    """Short lists."""
    return st.lists(strategy, min_size=min_size, max_size=5)


def optional(strategy: SearchStrategy[T]) -> SearchStrategy[T | None]:
    return st.one_of(st.none(), strategy)


ALL_DTYPES = tuple(sorted({one for one in vars(torch).values() if isinstance(one, torch.dtype)}, key=str))
"""Every dtype that torch has: single bits, eight-bit floats and quantized ones included."""
DTYPES = st.sampled_from(ALL_DTYPES)
DIFFERENTIABLE = st.sampled_from(
    [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128]
)
ALL_LAYOUTS = tuple(sorted({one for one in vars(torch).values() if isinstance(one, torch.layout)}, key=str))
LAYOUTS = st.sampled_from(ALL_LAYOUTS)
DEVICES = st.sampled_from(
    [
        torch.device(name)
        for name in ("cpu", "cpu:0", "meta", "meta:3", "cuda", "cuda:0", "cuda:7", "xpu:1", "mps")
    ]
)

_QUANTIZED = {torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4}
_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


@dataclass(frozen=True)
class TensorOf:
    """A tensor yet to be made: hypothesis prints what it draws, and some dtypes cannot be printed."""

    dtype: torch.dtype
    layout: torch.layout
    shape: tuple[int, ...]
    device: str
    transposed: bool

    def make(self) -> Tensor:
        if self.layout != torch.strided:
            return _sparse(self.layout, self.dtype)
        tensor = torch.empty(self.shape, dtype=self.dtype, device=self.device)
        return tensor.t() if self.transposed else tensor


@st.composite
def tensors(draw: st.DrawFn, dtypes: SearchStrategy[torch.dtype] = DTYPES) -> TensorOf:
    """Tensors of every dtype, layout and shape, dense ones on the processor or without storage, and transposed."""
    dtype = draw(dtypes)
    quantized = dtype in _QUANTIZED
    layout = torch.strided if quantized else draw(st.sampled_from([torch.strided, *_SPARSE]))
    shape = draw(SHAPES)
    transposed = len(shape) == 2 and not quantized and draw(st.booleans())
    return TensorOf(dtype, layout, shape, draw(st.sampled_from(["cpu", "meta"])), transposed)


def made(value: Any) -> Any:
    """A drawn value with its tensors made."""
    if isinstance(value, TensorOf):
        return value.make()
    return type(value)(made(one) for one in value) if isinstance(value, list | tuple) else value


def _sparse(layout: torch.layout, dtype: torch.dtype) -> Tensor:
    if layout == torch.sparse_coo:
        indices = torch.tensor([[0, 1], [1, 0]])
        return torch.sparse_coo_tensor(indices, torch.empty(2, dtype=dtype), (4, 4), check_invariants=False)
    block = (2, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else ()
    return torch.sparse_compressed_tensor(
        torch.tensor([0, 1, 1]),
        torch.tensor([0]),
        torch.empty((1, *block), dtype=dtype),
        (4, 4) if block else (2, 2),
        layout=layout,
        check_invariants=False,
    )
