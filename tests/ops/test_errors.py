"""Wrong calls say which operator, which argument, what was expected and what was given."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import backbind
import numpy as np
import pytest
import torch
from backbind._operator import FunctionalOperator
from torch import Tensor

from tests.ops.node_set import NODE_SET, same_bits

T = torch.ones(2)
OPERATORS = list(backbind.ops)


def message(error: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    return str(caught.value)


def tanh(*args: Any, **kwargs: Any) -> object:
    return backbind.ops.TanhBackward0(*args, **kwargs)


def test_too_few_arguments() -> None:
    assert (
        message(TypeError, lambda: tanh()) == "TanhBackward0() is missing argument 'grads' (position 1 of 3)"
    )
    assert message(TypeError, lambda: tanh([T], [True])) == (
        "TanhBackward0() is missing argument 'result' (position 3 of 3)"
    )
    assert message(TypeError, lambda: tanh([T], result=T)) == (
        "TanhBackward0() is missing argument 'needs_input_grad' (position 2 of 3)"
    )


def test_too_many_arguments() -> None:
    assert message(TypeError, lambda: tanh([T], [True], T, T)) == "TanhBackward0() takes 3 arguments, got 4"


def test_argument_given_twice() -> None:
    assert (
        message(TypeError, lambda: tanh([T], [True], T, result=T))
        == "TanhBackward0() got argument 'result' twice"
    )


def test_unknown_keyword_with_a_suggestion() -> None:
    assert message(TypeError, lambda: tanh([T], [True], reslut=T)) == (
        "TanhBackward0() has no argument 'reslut', did you mean 'result'?"
    )


def test_unknown_keyword_without_a_suggestion() -> None:
    assert message(TypeError, lambda: tanh([T], [True], completely_different=T)) == (
        "TanhBackward0() has no argument 'completely_different'; its arguments are: grads, needs_input_grad, result"
    )


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_arity_of_every_operator(operator: FunctionalOperator) -> None:
    names = ["grads", "needs_input_grad", *(one.name for one in operator.saved)]
    assert message(TypeError, lambda: operator(*[None] * (len(names) + 1))) == (
        f"{operator.name}() takes {len(names)} arguments, got {len(names) + 1}"
    )
    assert message(TypeError, lambda: operator(*[None] * (len(names) - 1))) == (
        f"{operator.name}() is missing argument '{names[-1]}' (position {len(names)} of {len(names)})"
    )
    for name in names:
        assert message(TypeError, lambda: operator(*[None] * len(names), **{name: None})) == (  # noqa: B023
            f"{operator.name}() got argument '{name}' twice"
        )


def test_wrong_types_of_the_leading_arguments() -> None:
    assert message(TypeError, lambda: tanh(T, [True], T)) == (
        "TanhBackward0() argument 'grads': expected Sequence[Tensor | None], got Tensor"
    )
    assert message(TypeError, lambda: tanh([T, 1], [True], T)) == (
        "TanhBackward0() argument 'grads': expected Sequence[Tensor | None], got int at position 1"
    )
    assert message(TypeError, lambda: tanh([T], True, T)) == (
        "TanhBackward0() argument 'needs_input_grad': expected Sequence[bool], got bool"
    )
    assert message(TypeError, lambda: tanh([T], [1], T)) == (
        "TanhBackward0() argument 'needs_input_grad': expected Sequence[bool], got int at position 0"
    )
    assert message(TypeError, lambda: tanh([T], "T", T)) == (
        "TanhBackward0() argument 'needs_input_grad': expected Sequence[bool], got str"
    )


def test_wrong_lengths_of_the_leading_arguments() -> None:
    assert message(ValueError, lambda: tanh([T], [True, False], T)) == (
        "TanhBackward0() argument 'needs_input_grad': expected 1 flag, one for each differentiable input, got 2"
    )
    mul = backbind.ops.MulBackward0
    arguments = (T, torch.float32, T, torch.float32)
    assert message(ValueError, lambda: mul([T], [True], *arguments)) == (
        "MulBackward0() argument 'needs_input_grad': expected 2 flags, one for each differentiable input, got 1"
    )
    assert message(ValueError, lambda: mul([], [True, True], *arguments)) == (
        "MulBackward0: grads must have 1 element (None for an undefined gradient), got 0"
    )
    assert message(ValueError, lambda: mul([T, T], [True, True], *arguments)) == (
        "MulBackward0: grads must have 1 element (None for an undefined gradient), got 2"
    )


# One operator and argument for each kind of argument, and values that are of no such kind.
_KINDS: dict[str, tuple[str, str, str, list[tuple[object, str]]]] = {
    "Tensor?": (
        "TanhBackward0",
        "result",
        "Tensor | None",
        [(1, "int"), ([T], "list"), (np.ones(2), "numpy.ndarray")],
    ),
    "Tensor[]": (
        "ForeachAbsBackward0",
        "self",
        "Sequence[Tensor]",
        [(T, "Tensor"), ([None], "NoneType at position 0"), (7, "int")],
    ),
    "Tensor?[]": (
        "IndexBackward0",
        "indices",
        "Sequence[Tensor | None]",
        [(None, "NoneType"), ([T, 2], "int at position 1")],
    ),
    "bool": ("SumBackward1", "keepdim", "bool", [(1, "int"), (None, "NoneType")]),
    "bool?": ("NativeDropoutBackward0", "train", "bool | None", [(0, "int"), ("no", "str")]),
    "int": (
        "GatherBackward0",
        "dim",
        "int",
        [(1.5, "float"), (None, "NoneType"), (T, "Tensor"), ([1], "list")],
    ),
    "int?": ("AminmaxBackward0", "dim", "int | None", [(1.0, "float"), ([0], "list")]),
    "int[]": (
        "AmaxBackward0",
        "dim",
        "Sequence[int]",
        [(1, "int"), ([1, 2.5], "float at position 1"), (None, "NoneType")],
    ),
    "int[]?": (
        "SumBackward1",
        "dim",
        "Sequence[int] | None",
        [(1, "int"), ([None], "NoneType at position 0")],
    ),
    "SymInt": ("SelectBackward0", "index", "int", [(1.5, "float"), (None, "NoneType")]),
    "SymInt?": ("SliceBackward0", "start", "int | None", [("0", "str")]),
    "SymInt[]": (
        "ViewBackward0",
        "self_sym_sizes",
        "Sequence[int]",
        [(3, "int"), (["a"], "str at position 0")],
    ),
    "SymInt[]?": ("ConvolutionBackward0", "bias_sym_sizes_opt", "Sequence[int] | None", [(3, "int")]),
    "float": ("CdistBackward0", "p", "float", [("2", "str"), (None, "NoneType"), (1j, "complex")]),
    "float?": ("LogitBackward0", "eps", "float | None", [("x", "str"), (1j, "complex")]),
    "Scalar": (
        "PowBackward0",
        "exponent",
        "int | float | complex | bool",
        [("x", "str"), (None, "NoneType"), (T, "Tensor")],
    ),
    "Scalar?": ("ClampBackward1", "max", "int | float | complex | bool | None", [("x", "str")]),
    "Scalar[]": (
        "ForeachMulBackward1ScalarList",
        "scalars",
        "Sequence[int | float | complex | bool]",
        [(1.0, "float"), ([1, "x"], "str at position 1")],
    ),
    "ScalarType": (
        "MulBackward0",
        "self_scalar_type",
        "torch.dtype",
        [(6, "int"), ("float32", "str"), (None, "NoneType")],
    ),
    "ScalarType?": (
        "IndexBackward0",
        "self_options_dtype",
        "torch.dtype | None",
        [(6, "int"), (float, "type")],
    ),
    "ScalarType[]": (
        "CatBackward0",
        "tensors_args_scalartypes",
        "Sequence[torch.dtype]",
        [(torch.float32, "torch.dtype"), ([6], "int at position 0")],
    ),
    "Layout": (
        "MmBackward0",
        "self_layout",
        "torch.layout",
        [("strided", "str"), (0, "int"), (None, "NoneType")],
    ),
    "Layout?": ("IndexBackward0", "self_options_layout", "torch.layout | None", [(0, "int")]),
    "Device?": ("IndexBackward0", "self_options_device", "torch.device | None", [("cpu", "str"), (0, "int")]),
    "str": ("GeluBackward0", "approximate", "str", [(b"none", "bytes"), (None, "NoneType")]),
    "str?": ("DivBackward2", "rounding_mode", "str | None", [(1, "int"), (b"floor", "bytes")]),
}


def test_every_type_of_the_schemas_is_in_the_table_below() -> None:
    used = {one.schema_type for operator in OPERATORS for one in operator.saved}
    assert used == set(_KINDS)


def arguments_with(node: str, name: str, value: object) -> tuple[FunctionalOperator, list[Any]]:
    """The arguments of a call, of which only the one called ``name`` is wrong."""
    operator = backbind.ops.get(node)
    made = next((case for case in NODE_SET if case.node == node), None)
    if made is not None:
        arguments: list[Any] = [made.make().grads, *made.make().packed]
    else:
        live = torch.amax(torch.ones(2, 3, requires_grad=True), [1]) if node == "AmaxBackward0" else None
        first = torch._foreach_abs([T.clone().requires_grad_()])[0] if live is None else live
        arguments = [[torch.ones_like(first)], *backbind.pack(first.grad_fn)]
    position = 2 + [one.name for one in operator.saved].index(name)
    arguments[position] = value
    return operator, arguments


@pytest.mark.parametrize("schema_type", _KINDS)
def test_wrong_type_of_each_kind(schema_type: str) -> None:
    node, name, expected, values = _KINDS[schema_type]
    operator = backbind.ops.get(node)
    assert next(one for one in operator.saved if one.name == name).schema_type == schema_type
    for value, given in values:
        operator, arguments = arguments_with(node, name, value)
        text = f"{node}() argument '{name}': expected {expected}, got {given}"
        assert message(TypeError, lambda: operator(*arguments)) == text  # noqa: B023
        assert message(TypeError, lambda: operator.delegate(*arguments)) == text  # noqa: B023


def test_numbers_that_do_not_fit() -> None:
    operator, arguments = arguments_with("GatherBackward0", "dim", 2**64)
    assert message(ValueError, lambda: operator(*arguments)) == (
        "GatherBackward0() argument 'dim': the integer does not fit into 64 bits"
    )
    operator, arguments = arguments_with("CdistBackward0", "p", 10**400)
    assert message(ValueError, lambda: operator(*arguments)) == (
        "CdistBackward0() argument 'p': the integer does not fit into a float"
    )


def test_text_that_is_not_unicode() -> None:
    operator, arguments = arguments_with("GeluBackward0", "approximate", "\ud800")
    assert message(ValueError, lambda: operator(*arguments)) == (
        "GeluBackward0() argument 'approximate': the text is not valid unicode"
    )


@pytest.mark.parametrize(
    ("node", "name", "value", "text"),
    [
        (
            "CatBackward0",
            "tensors_args_scalartypes",
            [],
            "CatBackward0: 'tensors_args_scalartypes' must have 3 elements, got 0",
        ),
        (
            "CatBackward0",
            "tensors_size",
            -1,
            "CatBackward0: a list size must lie between 0 and 16777216, got -1",
        ),
        (
            "CatBackward0",
            "tensors_args_sizes_symint_lengths",
            [2, 2, 9],
            "CatBackward0: the lengths of nested lists must be non-negative and add up to the number of values (6)",
        ),
        (
            "CatBackward0",
            "tensors_args_sizes_symint_lengths",
            [2, 2, 1],
            "CatBackward0: the lengths of nested lists must add up to the number of values (6), 1 values are left over",
        ),
        (
            "ForeachMulBackward1ScalarList",
            "scalars",
            [1.0],
            "ForeachMulBackward1ScalarList: 'scalars' must have 2 elements, got 1",
        ),
        (
            "ForeachTanhBackward0",
            "result",
            [T, T, T],
            "ForeachTanhBackward0: 'result' must have 2 elements, got 3",
        ),
        (
            "MmBackward0",
            "self_sym_strides",
            [],
            "MmBackward0: 'self_sym_sizes' and 'self_sym_strides' must be equally long, got 2 and 0 elements",
        ),
        (
            "AsStridedBackward0",
            "self_geometry_strides",
            [1],
            "AsStridedBackward0: a geometry needs as many strides as sizes, got 1 and 2",
        ),
        (
            "GatherBackward0",
            "dim",
            5,
            "GatherBackward0: 'dim' must be a dimension of a tensor with 2 dimensions, got 5",
        ),
        (
            "ConvolutionBackward0",
            "groups",
            0,
            "ConvolutionBackward0: 'groups' must be greater than zero, got 0",
        ),
        (
            "AvgPool2DBackward0",
            "padding",
            [1, 2, 3],
            "AvgPool2DBackward0: 'padding' must have 2 elements, got 3",
        ),
        (
            "TanhBackward0",
            "result",
            None,
            "TanhBackward0: 'result' is None, but a gradient that needs_input_grad asks for is computed from it",
        ),
        (
            "NativeBatchNormBackward0",
            "result1",
            torch.ones(7),
            "NativeBatchNormBackward0: 'result1' must have 3 elements, got 7",
        ),
        (
            "NativeBatchNormBackward0",
            "training",
            False,
            "NativeBatchNormBackward0: 'running_mean' is None, but the running statistics are needed where there is "
            "no training",
        ),
        (
            "NativeLayerNormBackward0",
            "normalized_shape",
            [5],
            "NativeLayerNormBackward0: the sizes of 'input' must end with the normalized shape [5], got [3, 4]",
        ),
        (
            "RepeatBackward0",
            "repeats",
            [2, 2],
            "RepeatBackward0: a tensor of sizes [3, 4] repeated [2, 2] times cannot have a gradient of sizes [6, 4]",
        ),
        (
            "ExpandBackward0",
            "self_sym_sizes",
            [2, 4],
            "ExpandBackward0: a tensor of sizes [2, 4] cannot be expanded to those of its gradient, [2, 3, 4]",
        ),
        (
            "ExpandBackward0",
            "self_sym_sizes",
            [1, 2, 3, 4],
            "ExpandBackward0: a tensor of sizes [1, 2, 3, 4] cannot be expanded to those of its gradient, [2, 3, 4]",
        ),
        (
            "CdistBackward0",
            "result",
            torch.ones(2, 2, dtype=torch.float64),
            "CdistBackward0: 'grads' and 'result' must have the same sizes, got [3, 3] and [2, 2]",
        ),
    ],
)
def test_arguments_that_do_not_fit_together(node: str, name: str, value: object, text: str) -> None:
    operator, arguments = arguments_with(node, name, value)
    for face in (operator, operator.delegate, operator.overload):
        assert message(ValueError, lambda: face(*arguments)) == text  # noqa: B023


_COMPLEX = torch.ones(2, 3, dtype=torch.complex64)


@pytest.mark.parametrize(
    ("dims", "text"),
    [
        ([0, 0], "'dim' must hold distinct dimensions counted from the front, got [0, 0]"),
        ([1, -1], "'dim' must hold distinct dimensions counted from the front, got [1, -1]"),
        ([-2], "'dim' must hold distinct dimensions counted from the front, got [-2]"),
        ([2], "'dim' must be a dimension of a tensor with 2 dimensions, got 2"),
    ],
)
def test_dimensions_that_torch_would_transform_without_looking(dims: list[int], text: str) -> None:
    ops = backbind.ops
    assert message(ValueError, lambda: ops.FftC2CBackward0([_COMPLEX], [True], dims, True, 0)) == (
        f"FftC2CBackward0: {text}"
    )
    assert message(ValueError, lambda: ops.FftC2RBackward0([_COMPLEX.real], [True], dims, 0)) == (
        f"FftC2RBackward0: {text}"
    )
    assert message(
        ValueError, lambda: ops.FftR2CBackward0([_COMPLEX], [True], dims, 0, True, _COMPLEX.real)
    ) == (f"FftR2CBackward0: {text}")


def test_the_last_dimension_may_be_transformed_by_a_negative_number() -> None:
    x = torch.randn(2, 3, dtype=torch.complex64, requires_grad=True)
    node: Any = torch.ops.aten._fft_c2c(x, [-1], 0, True).grad_fn
    (result,) = backbind.ops.for_node(node)([_COMPLEX], *backbind.pack(node))
    assert result is not None
    assert torch.equal(torch.view_as_real(result), torch.view_as_real(node(_COMPLEX)))


@pytest.mark.parametrize("missing", ["grads", "min", "max"])
def test_reduced_dimensions_that_are_not_there(missing: str) -> None:
    x, reduced = torch.ones(1, 2, 3, 3, 3), torch.ones(3)
    given = {one: torch.ones(1, 2, 3, 3) for one in ("grads", "min", "max")} | {missing: reduced}
    call = lambda: backbind.ops.AminmaxBackward0(  # noqa: E731
        [given["grads"], None], [True], 4, False, x, given["max"], given["min"]
    )
    assert message(ValueError, call) == (
        f"AminmaxBackward0: '{missing}' with 1 dimension cannot come from a reduction along the dimensions in 'dim', "
        "[4]"
    )


def test_an_internal_assertion_of_torch_is_put_into_words() -> None:
    indices = torch.ones(3, dtype=torch.int64)
    text = message(RuntimeError, lambda: backbind.ops.MaxUnpool2DBackward0([torch.ones(())], [True], indices))
    assert re.fullmatch(
        r"MaxUnpool2DBackward0: the arguments do not fit together: torch expected indices\.dim\(\) >= dim",
        text.partition("\n")[0],
    )


def test_other_sequences_are_as_good_as_lists() -> None:
    x = torch.randn(2, 3, 4)
    grad = torch.randn(2, 3, 4)
    call: Any = backbind.ops.ViewBackward0
    (expected,) = call([grad.view(-1)], [True], [2, 3, 4])
    for sizes in ((2, 3, 4), x.shape, range(2, 5), np.array([2, 3, 4]), [np.int64(2), 3, 4]):
        (result,) = call((grad.view(-1),), (True,), sizes)
        assert isinstance(result, Tensor)
        assert same_bits(result, expected)


def test_an_error_in_a_sequence_reaches_the_caller() -> None:
    class Raises:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, position: int) -> int:
            raise KeyError("mine")

    sequence: Any = Raises()
    assert message(KeyError, lambda: backbind.ops.ViewBackward0([T], [True], sequence)) == "'mine'"


def test_namespace_errors() -> None:
    ops: Any = backbind.ops
    assert message(AttributeError, lambda: ops.MulBackwrd0) == (
        "module 'backbind.ops' has no operator 'MulBackwrd0', did you mean 'MulBackward0'?"
    )
    assert message(AttributeError, lambda: ops.zzz) == "module 'backbind.ops' has no operator 'zzz'"
    assert message(KeyError, lambda: backbind.ops.get("TanhBackward1")) == repr(
        "no operator for a node called 'TanhBackward1', did you mean 'TanhBackward0'?"
    )


def test_an_operator_cannot_be_made() -> None:
    assert message(TypeError, lambda: type(backbind.ops.MulBackward0)()) == (
        "cannot create 'backbind._C.Operator' instances"
    )
