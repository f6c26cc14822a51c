"""Saved values survive every way they travel: forward -> node -> pack -> Python -> operator, for each row of the table.

The forwards below put values that hypothesis draws into live nodes, so what `pack` gives is compared with what went in,
not with another conversion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import backbind
import pytest
import torch
from backbind import _C
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from codegen.model.saved_types import SAVED_TYPES
from tests.ops.node_set import all_same_bits, same_bits

_SETTINGS = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])

DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint16, torch.uint32, torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex32, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.quint8, torch.qint8, torch.qint32, torch.bits8, torch.bits16),
)
_MKLDNN: torch.layout = torch.ones(1).to_mkldnn().layout
LAYOUTS = (
    *(
        torch.strided,
        torch.sparse_coo,
        torch.sparse_csr,
        torch.sparse_csc,
        torch.sparse_bsr,
        torch.sparse_bsc,
    ),
    *(_MKLDNN, torch.jagged),
)

integers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=True, allow_infinity=True)
numbers = st.one_of(
    st.booleans(), integers, st.integers(2**63, 2**64 - 1), floats, st.complex_numbers(allow_nan=True)
)
texts = st.text(max_size=20)  # no lone surrogates: they are not text in any encoding

# By type in a schema: values of its kind.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int": integers,
    "SymInt": integers,
    "float": floats,
    "Scalar": numbers,
    "ScalarType": st.sampled_from(DTYPES),
    "Layout": st.sampled_from(LAYOUTS),
    "Device": st.sampled_from(
        [torch.device("cpu"), torch.device("meta"), torch.device("cuda", 3), torch.device("cuda")]
    ),
    "str": texts,
    "Tensor": st.builds(
        torch.zeros, st.lists(st.integers(0, 2), max_size=3), dtype=st.sampled_from(DTYPES[:6])
    ),
}


def strategy_for(schema_type: str) -> st.SearchStrategy[Any]:
    """Values for a type in a schema: ``SymInt[]?``."""
    if schema_type.endswith("?"):
        return st.none() | strategy_for(schema_type[:-1])
    if schema_type.endswith("[]"):
        return st.lists(strategy_for(schema_type[:-2]), max_size=4)
    return VALUES[schema_type]


def same(left: Any, right: Any) -> bool:
    """Equal in value and type, with NaN equal to itself and the sign of zero told apart."""
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return isinstance(left, Tensor) and isinstance(right, Tensor) and same_bits(left, right)
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and len(left) == len(right) and all(map(same, left, right))
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    if isinstance(left, complex):
        return same(left.real, right.real) and same(left.imag, right.imag)
    return bool(left == right)


_ONE_FOR_EACH_TYPE: dict[str, tuple[_C.Operator, int]] = {}
for _operator in _C.make_operators():
    for _position, _argument in enumerate(_operator.saved):
        _ONE_FOR_EACH_TYPE.setdefault(_argument.schema_type, (_operator, _position))


@pytest.mark.parametrize("schema_type", sorted(_ONE_FOR_EACH_TYPE))
@_SETTINGS
@given(st.data())
def test_python_to_ivalue_to_python(schema_type: str, data: st.DataObject) -> None:
    """A value is the same after it was made an IValue and back, for each type that a schema may name."""
    operator, _ = _ONE_FOR_EACH_TYPE[schema_type]
    saved = [data.draw(strategy_for(one.schema_type), label=one.name) for one in operator.saved]
    converted = operator._convert([], [False] * len(operator.inputs), *saved)
    assert converted is not None
    assert len(converted) == len(saved)
    for value, result in zip(saved, converted, strict=True):
        assert same(value, result)


@dataclass(frozen=True)
class Row:
    """A forward that saves values of one row of the type table."""

    forward: Callable[[Tensor, Any], Any]
    """Called with a leaf and a drawn value; returns the output whose node saves the value."""
    argument: str
    """The operator argument under which `pack` gives the value."""
    values: st.SearchStrategy[Any]
    given: Callable[[Tensor, Any], Any] = lambda leaf, value: value
    """What `pack` must give for a leaf and a value."""
    shape: tuple[int, ...] = (3, 4)
    runs: bool = True
    """Whether the backward can be run with every value."""


def _index(leaf: Tensor, rows: list[int] | None) -> Tensor:
    return leaf[:, [0, 1]] if rows is None else leaf[torch.tensor(rows), :]


_DIMS = st.lists(st.integers(0, 1), unique=True, min_size=1)
_SPLIT = st.lists(st.integers(0, 3), min_size=1, max_size=3)

ROWS: dict[str, Row] = {
    "tensor": Row(lambda x, v: x * v, "other", VALUES["Tensor"].map(lambda _: torch.randn(3, 4))),
    "tensor_list": Row(
        lambda x, v: torch._foreach_mul([x] * len(v), v)[0],
        "other",
        st.integers(1, 3).map(lambda count: [torch.randn(3, 4) for _ in range(count)]),
    ),
    "optional_tensor_list": Row(
        _index,
        "indices",
        st.none() | st.lists(st.integers(0, 2), min_size=1, max_size=3),
        lambda _, v: [None, torch.tensor([0, 1])] if v is None else [torch.tensor(v)],
    ),
    "boolean": Row(lambda x, v: x.sum(0, keepdim=v), "keepdim", st.booleans()),
    "optional_boolean": Row(
        lambda x, v: torch.native_dropout(x, 0.5, v)[0], "train", st.sampled_from([None, True])
    ),
    "integer": Row(lambda x, v: x.cumsum(v), "dim", st.integers(-2, 1)),
    "optional_integer": Row(lambda x, v: torch.aminmax(x, dim=v)[0], "dim", st.none() | st.integers(-2, 1)),
    "list_size": Row(lambda x, v: torch.cat([x] * v), "tensors_size", st.integers(1, 5)),
    "integer_list": Row(lambda x, v: x.amax(v), "dim", _DIMS),
    "optional_integer_list": Row(lambda x, v: torch.linalg.vector_norm(x, 2, v), "dim", st.none() | _DIMS),
    "sym_int": Row(lambda x, v: x.select(0, v), "index", st.integers(-3, 2)),
    "optional_sym_int": Row(
        lambda x, v: torch.ops.aten.slice(x, 0, v, None), "start", st.none() | st.integers(-9, 2**63 - 1)
    ),
    "sym_int_list": Row(
        lambda x, v: x.expand([*v, 3, 4]),
        "self_sym_sizes",
        st.lists(st.integers(0, 3), max_size=3),
        lambda x, v: [3, 4],
    ),
    "optional_sym_int_list": Row(
        lambda x, v: torch.conv1d(x, torch.ones(2, 3, 1), torch.ones(2) if v else None),
        "bias_sym_sizes_opt",
        st.booleans(),
        lambda _, v: [2] if v else [0],  # what torch saves without a bias
        shape=(1, 3, 4),
    ),
    "floating": Row(
        lambda x, v: torch.native_batch_norm(x, None, None, None, None, True, 0.1, v)[0], "eps", floats
    ),
    "optional_floating": Row(lambda x, v: torch.logit(x, v), "eps", st.none() | st.floats(0, 0.5)),
    "scalar": Row(
        lambda x, v: torch.ops.aten.pow.Tensor_Scalar(x, v),
        "exponent",
        st.one_of(st.booleans(), integers, floats),
    ),
    "optional_scalar": Row(
        lambda x, v: torch.ops.aten.clamp(x, v, 3.0),
        "min",
        st.one_of(st.none(), st.integers(-9, 9), st.floats(width=32)),
    ),
    "scalar_list": Row(
        lambda x, v: torch._foreach_mul([x] * len(v), v)[0],
        "scalars",
        st.lists(st.one_of(st.integers(-9, 9), floats), min_size=1, max_size=4),
    ),
    "scalar_type": Row(
        lambda x, v: x.to(v) * 2.0 if v.is_floating_point else x + torch.ones((), dtype=v),
        "self_scalar_type",
        st.sampled_from([torch.float32, torch.int64]),
        lambda _, v: torch.float32,
        runs=False,
    ),
    "scalar_type_list": Row(
        lambda x, v: torch.cat([x, *(torch.ones(1, 4, dtype=one) for one in v)]),
        "tensors_args_scalartypes",
        st.lists(st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.int64]), max_size=3),
        lambda _, v: [torch.float32, *v],
    ),
    "layout": Row(
        lambda x, v: torch.mm(torch.eye(3).to_sparse(layout=v) if v != torch.strided else torch.eye(3), x),
        "self_layout",
        st.sampled_from([torch.strided, torch.sparse_coo, torch.sparse_csr]),
        runs=False,
    ),
    "string": Row(
        lambda x, v: torch.nn.functional.gelu(x, approximate=v),
        "approximate",
        st.sampled_from(["none", "tanh"]),
    ),
    "optional_string": Row(
        lambda x, v: torch.div(x, torch.ones(3, 4), rounding_mode=v),
        "rounding_mode",
        st.sampled_from([None, "floor", "trunc"]),
    ),
    "tensor_options": Row(
        lambda x, v: x.split(v, 0)[0], "self_options_dtype", st.integers(1, 3), lambda *_: torch.float32
    ),
    "type_and_size": Row(
        lambda x, v: torch.select_scatter(torch.ones(3, 4), x[0], 0, v),
        "src_info_sizes",
        st.integers(0, 2),
        lambda *_: [4],
        runs=False,
    ),
    "tensor_geometry": Row(
        lambda x, v: x.as_strided((2, 2), (4, 1), v),
        "self_geometry_strides",
        st.integers(0, 6),
        lambda *_: [4, 1],
    ),
    "integer_lists": Row(
        lambda x, v: torch.block_diag(x, *(torch.ones(one, 2) for one in v)),
        "tensors_args_sizes_values",
        _SPLIT,
        lambda _, v: [3, 4, *(size for one in v for size in (one, 2))],
    ),
    "sym_int_lists": Row(
        lambda x, v: torch.cat([x, *(torch.ones(one, 4) for one in v)]),
        "tensors_args_sizes_symint_values",
        _SPLIT,
        lambda _, v: [3, 4, *(size for one in v for size in (one, 4))],
    ),
}


def test_there_is_a_forward_for_every_row() -> None:
    assert set(ROWS) == {row.key for row in SAVED_TYPES}


@pytest.mark.parametrize("key", sorted(ROWS))
@_SETTINGS
@given(st.data())
def test_live_node_to_python_to_operator(key: str, data: st.DataObject) -> None:
    """What the forward saved is what `pack` gives, and calling with it is the same as running the node."""
    row = ROWS[key]
    value = data.draw(row.values)
    leaf = torch.rand(row.shape).requires_grad_()
    output = row.forward(leaf, value)
    node = output.grad_fn
    operator = backbind.ops.for_node(node)
    packed = backbind.pack(node)
    position = [one.name for one in operator.saved].index(row.argument)
    assert same(packed[1 + position], row.given(leaf, value))
    assert same(backbind.pack(node), packed)
    converted = operator._convert([], *packed)  # type: ignore[attr-defined]
    assert same(converted, packed[1:])
    if not row.runs:
        return
    grads: list[Tensor | None] = [None] * len(node._input_metadata)
    grads[output.output_nr] = torch.randn_like(output)
    expected = node(*grads)
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    for face in (operator, operator.delegate, operator.overload):
        assert all_same_bits(face(grads, *packed), expected)
    # Once more, with what a conversion gave back.
    assert all_same_bits(operator(grads, packed[0], *converted), expected)


@_SETTINGS
@given(texts)
def test_text_reaches_torch_unchanged(text: str) -> None:
    assume(text not in ("none", "tanh"))
    x = torch.ones(2)
    operator = backbind.ops.GeluBackward0
    for face in (operator, operator.delegate, operator.overload):
        with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh"):
            face([x], [True], text, x)
    assert operator._convert([x], [True], text, x)[0] == text  # type: ignore[attr-defined]


@_SETTINGS
@given(st.lists(st.lists(st.integers(0, 5), max_size=3), max_size=4))
def test_nested_lists_come_apart_as_they_were_put_together(lists: list[list[int]]) -> None:
    """The one row that no single list carries: flattened values beside the lengths."""
    tensors = [torch.zeros(one).requires_grad_() for one in lists if len(one) == 2]
    assume(len(tensors) > 0)
    node = torch.block_diag(*tensors).grad_fn
    packed = dict(
        zip([one.name for one in backbind.ops.for_node(node).saved], backbind.pack(node)[1:], strict=True)
    )
    assert packed["tensors_args_sizes_values"] == [size for tensor in tensors for size in tensor.shape]
    assert packed["tensors_args_sizes_lengths"] == [2] * len(tensors)


@pytest.mark.parametrize("dtype", DTYPES[:16], ids=str)
def test_tensors_of_every_dtype(dtype: torch.dtype) -> None:
    tensor = torch.zeros(2, 3).to(dtype)
    (result,) = backbind.ops.TanhBackward0._convert([], [True], tensor)  # type: ignore[attr-defined]
    assert result is tensor


@pytest.mark.parametrize(
    "layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, _MKLDNN, torch.strided], ids=str
)
def test_tensors_of_every_layout(layout: torch.layout) -> None:
    dense = torch.eye(3)
    tensor = dense.to_mkldnn() if layout == _MKLDNN else dense
    if layout not in (_MKLDNN, torch.strided):
        tensor = dense.to_sparse(layout=layout)
    (result,) = backbind.ops.TanhBackward0._convert([], [True], tensor)  # type: ignore[attr-defined]
    assert result is tensor
    assert result.layout == layout


def test_symbolic_integers_stay_symbols() -> None:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    environment = ShapeEnv()
    symbol = environment.create_unbacked_symint()
    assert backbind.ops.ViewBackward0._convert([], [True], [symbol]) is None  # type: ignore[attr-defined]
    meta = torch.empty(2, 3, device="meta")
    results = backbind.ops.ViewBackward0([meta.view(-1)], [True], [2, 3])
    assert results[0] is not None
    assert results[0].shape == (2, 3)
