"""For each row of the type table a node through which any value of that row travels unchanged.

A carrier makes its node by a real call of the forward operator with the value, under a mode that stands in for the
kernel: autograd keeps the value as given, and no kernel may refuse it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from torch import Tensor

from tests.ivalue.modes import ForwardStandIn
from tests.ivalue.values import (
    DEVICES,
    DIFFERENTIABLE,
    DTYPES,
    FLOATS,
    INT64,
    LAYOUTS,
    NUMBERS,
    SHAPES,
    TEXTS,
    lists_of,
    optional,
    tensors,
)

aten: Any = torch.ops.aten


def _x(dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.ones(2, 3, dtype=dtype, requires_grad=True)


def _lengths() -> Tensor:
    """Segments of one row each, of what `_x` gives."""
    return torch.ones(2, dtype=torch.int64)


@dataclass(frozen=True)
class Carrier:
    """How values of one row travel."""

    row: str
    """Key in the table of saved types."""
    node: str
    saved: tuple[str, ...]
    """The arguments of the operator that carry the value."""
    forward: Callable[[Any], Any]
    values: SearchStrategy[Any]
    expected: Callable[[Any], tuple[Any, ...]] = lambda value: (value,)
    """From the value to what the arguments must be."""
    given: tuple[SearchStrategy[Any], ...] = ()
    """What the arguments may be when an operator is called directly; the values themselves where this is empty."""
    seen: bool = True
    """Whether the formula hands the value on to an ATen operator as it is."""

    def __str__(self) -> str:
        return f"{self.row} in {self.node}"

    def make(self, value: Any) -> torch.autograd.graph.Node:
        """The live node that keeps ``value``."""
        with ForwardStandIn():
            outputs = self.forward(value)
        first = (
            outputs
            if isinstance(outputs, Tensor)
            else next(one for one in outputs if one.grad_fn is not None)
        )
        assert first.grad_fn is not None
        return first.grad_fn


def _options_of(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.layout, tensor.device, None


def _geometry(value: tuple[tuple[int, ...], tuple[int, ...], int]) -> Tensor:
    sizes, strides, offset = value
    return torch.empty(2000, dtype=torch.float64).as_strided(sizes, strides, offset).requires_grad_()


@st.composite
def _geometries(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    sizes = draw(SHAPES)
    return sizes, tuple(draw(st.integers(0, 40)) for _ in sizes), draw(st.integers(0, 40))


def _of_shape(shape: tuple[int, ...]) -> Tensor:
    return torch.empty(shape, dtype=torch.float64, requires_grad=True)


def _flat(shapes: list[tuple[int, ...]]) -> tuple[list[int], list[int]]:
    return [size for shape in shapes for size in shape], [len(shape) for shape in shapes]


_DIFFERENTIABLE_TENSORS = tensors(DIFFERENTIABLE)
_OPTIONS_GIVEN = (optional(DTYPES), optional(LAYOUTS), optional(DEVICES), optional(st.booleans()))
_LIST_SIZES = st.integers(1, 5)

CARRIERS: tuple[Carrier, ...] = (
    Carrier("tensor", "MulBackward0", ("other",), lambda value: aten.mul.Tensor(_x(), value), tensors()),
    Carrier(
        "tensor",
        "BinaryCrossEntropyBackward0",
        ("weight",),
        lambda value: aten.binary_cross_entropy(_x(), torch.ones(2, 3), value),
        optional(tensors()),
    ),
    Carrier(
        "tensor_list",
        "ForeachMulBackward0List",
        ("other",),
        lambda value: aten._foreach_mul.List([_x() for _ in value], value),
        lists_of(tensors(), min_size=1),
        seen=False,
    ),
    Carrier(
        "tensor_list",
        "CudnnRnnBackward0",
        ("weight",),
        lambda value: aten._cudnn_rnn(
            _x(), value, 1, None, _x(), None, 0, 1, 1, 1, False, 0.0, False, False, [], None
        ),
        lists_of(tensors()),
        seen=False,
    ),
    Carrier(
        "optional_tensor_list",
        "UnsafeIndexBackward0",
        ("indices",),
        lambda value: aten._unsafe_index.Tensor(_x(), value),
        lists_of(optional(tensors())),
    ),
    Carrier(
        "optional_tensor_list",
        "IndexBackward0",
        ("indices",),
        lambda value: aten.index.Tensor(_x(), value),
        lists_of(optional(tensors())),
        seen=False,
    ),
    Carrier(
        "boolean",
        "UpsampleBilinear2DBackward0",
        ("align_corners",),
        lambda value: aten.upsample_bilinear2d(_x(), [4, 4], value, None, None),
        st.booleans(),
    ),
    Carrier(
        "optional_boolean",
        "NativeDropoutBackward0",
        ("train",),
        lambda value: aten.native_dropout(_x(), 0.5, value),
        optional(st.booleans()),
        seen=False,
    ),
    Carrier(
        "integer",
        "FftC2CBackward0",
        ("normalization",),
        lambda value: aten._fft_c2c(_x(torch.complex128), [0], value, True),
        INT64,
    ),
    Carrier(
        "optional_integer",
        "AvgPool2DBackward0",
        ("divisor_override",),
        lambda value: aten.avg_pool2d(_x(), [1], [1], [0], False, False, value),
        optional(INT64),
    ),
    Carrier(
        "list_size",
        "ForeachNegBackward0",
        ("self_size",),
        lambda value: aten._foreach_neg([_x() for _ in range(value)]),
        _LIST_SIZES,
        seen=False,
    ),
    Carrier(
        "integer_list", "FlipBackward0", ("dims",), lambda value: aten.flip(_x(), value), lists_of(INT64)
    ),
    Carrier(
        "optional_integer_list",
        "SumBackward1",
        ("dim",),
        lambda value: aten.sum.dim_IntList(_x(), value),
        optional(lists_of(INT64)),
        seen=False,
    ),
    Carrier("sym_int", "TrilBackward0", ("diagonal",), lambda value: aten.tril(_x(), value), INT64),
    Carrier(
        "optional_sym_int",
        "SliceBackward0_copy",
        ("start", "end"),
        lambda value: aten.slice_copy.Tensor(_x(), 0, *value, 1),
        st.tuples(optional(INT64), optional(INT64)),
        expected=tuple,
        given=(optional(INT64), optional(INT64)),
        seen=False,
    ),
    Carrier(
        "sym_int_list",
        "ConvolutionOverrideableBackward0",
        ("padding",),
        lambda value: aten.convolution_overrideable(_x(), _x(), None, [1], value, [1], False, [0], 1),
        lists_of(INT64),
    ),
    Carrier(
        "optional_sym_int_list",
        "ConvDepthwise2DBackward0",
        ("bias_sym_sizes_opt",),
        lambda value: aten._conv_depthwise2d(
            _x(), _x(), [1, 1], None if value is None else _of_shape(value), [1, 1], [0, 0], [1, 1]
        ),
        optional(SHAPES),
        given=(optional(lists_of(INT64)),),
    ),
    Carrier(
        "floating",
        "HuberLossBackward0",
        ("delta",),
        lambda value: aten.huber_loss(_x(), _x(), 1, value),
        FLOATS,
    ),
    Carrier(
        "optional_floating",
        "UpsampleBilinear2DBackward0",
        ("scales_h", "scales_w"),
        lambda value: aten.upsample_bilinear2d(_x(), [4, 4], True, *value),
        st.tuples(optional(FLOATS), optional(FLOATS)),
        expected=tuple,
        given=(optional(FLOATS), optional(FLOATS)),
    ),
    Carrier("scalar", "HardshrinkBackward0", ("lambd",), lambda value: aten.hardshrink(_x(), value), NUMBERS),
    Carrier(
        "scalar",
        "MulBackward1",
        ("other",),
        lambda value: aten.mul.Scalar(_x(torch.complex128), value),
        NUMBERS,
        seen=False,
    ),
    Carrier(
        "optional_scalar",
        "SegmentReduceBackward0",
        ("initial",),
        lambda value: aten.segment_reduce(_x(), "sum", lengths=_lengths(), initial=value),
        optional(NUMBERS),
    ),
    Carrier(
        "scalar_list",
        "ForeachMulBackward1ScalarList",
        ("scalars",),
        lambda value: aten._foreach_mul.ScalarList([_x() for _ in value], value),
        lists_of(NUMBERS, min_size=1),
        seen=False,
    ),
    Carrier(
        "scalar_type",
        "SoftmaxBackwardDataBackward0",
        ("input_dtype",),
        lambda value: aten._softmax_backward_data(_x(), _x(), 0, value),
        DTYPES,
    ),
    Carrier(
        "scalar_type",
        "MulBackward0",
        ("other_scalar_type",),
        lambda value: aten.mul.Tensor(_x(), torch.empty(2, dtype=value)),
        DTYPES,
        seen=False,
    ),
    Carrier(
        "scalar_type_list",
        "CatBackward0",
        ("tensors_args_scalartypes",),
        lambda value: aten.cat([_x(), *(torch.empty(2, dtype=one) for one in value)]),
        lists_of(DTYPES),
        expected=lambda value: ([torch.float64, *value],),
        given=(lists_of(DTYPES),),
        seen=False,
    ),
    Carrier(
        "layout",
        "MmBackward0",
        ("mat2_layout",),
        lambda value: aten.mm(_x(), value),
        tensors(),
        expected=lambda value: (value.layout,),
        given=(LAYOUTS,),
        seen=False,
    ),
    Carrier(
        "string",
        "GeluBackward0",
        ("approximate",),
        lambda value: aten.gelu(_x(), approximate=value),
        TEXTS,
    ),
    Carrier(
        "string",
        "SegmentReduceBackward0",
        ("reduce",),
        lambda value: aten.segment_reduce(_x(), value, lengths=_lengths()),
        TEXTS,
    ),
    Carrier(
        "optional_string",
        "DivBackward2",
        ("rounding_mode",),
        lambda value: aten.div.Tensor_mode(_x(), _x(), rounding_mode=value),
        optional(TEXTS),
        seen=False,
    ),
    Carrier(
        "tensor_options",
        "UnsafeIndexBackward0",
        tuple(f"self_options_{part}" for part in ("dtype", "layout", "device", "pin_memory")),
        lambda value: aten._unsafe_index.Tensor(value.requires_grad_(), []),
        _DIFFERENTIABLE_TENSORS,
        expected=_options_of,
        given=_OPTIONS_GIVEN,
    ),
    Carrier(
        "type_and_size",
        "CopysignBackward0",
        tuple(f"other_info_{part}" for part in ("sizes", "dtype", "layout", "device", "pin_memory")),
        lambda value: aten.copysign.Tensor(_x(), value.requires_grad_()),
        _DIFFERENTIABLE_TENSORS,
        expected=lambda value: (list(value.shape), *_options_of(value)),
        given=(lists_of(INT64), *_OPTIONS_GIVEN),
    ),
    Carrier(
        "tensor_geometry",
        "AsStridedScatterBackward0",
        tuple(f"self_geometry_{part}" for part in ("sizes", "strides", "storage_offset")),
        lambda value: aten.as_strided_scatter(_geometry(value), _x(), [2], [1], 0),
        _geometries(),
        expected=lambda value: (list(value[0]), list(value[1]), value[2]),
        given=(lists_of(INT64), lists_of(INT64), INT64),
        seen=False,
    ),
    Carrier(
        "integer_lists",
        "BlockDiagBackward0",
        ("tensors_args_sizes_values", "tensors_args_sizes_lengths"),
        lambda value: aten.block_diag([_of_shape(shape) for shape in value]),
        lists_of(SHAPES, min_size=1),
        expected=_flat,
        given=(lists_of(INT64), lists_of(INT64)),
        seen=False,
    ),
    Carrier(
        "sym_int_lists",
        "CatBackward0",
        ("tensors_args_sizes_symint_values", "tensors_args_sizes_symint_lengths"),
        lambda value: aten.cat([_of_shape(shape) for shape in value]),
        lists_of(SHAPES.filter(bool), min_size=1),  # torch reads past the end for tensors without dimensions
        expected=_flat,
        seen=False,
    ),
)
