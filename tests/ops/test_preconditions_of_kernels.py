"""What kernels of torch rely on without a look is looked at first: each row is a valid call with one value changed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.ops.node_set import same_bits
from tests.ops.test_errors import message

aten = torch.ops.aten


def x(*shape: int) -> Tensor:
    count = torch.Size(shape).numel()
    return torch.linspace(-0.9, 0.8, count, dtype=torch.float64).reshape(shape).requires_grad_()


def z(*shape: int, value: int = 0) -> Tensor:
    return torch.full(shape, value, dtype=torch.int64)


@dataclass(frozen=True)
class Row:
    """A forward, and a change to what its node saved."""

    forward: Callable[[], Tensor]
    name: str
    """The argument that is changed; ``grads`` is the only gradient."""
    value: object
    text: str
    """The message, behind the node's name."""

    def __str__(self) -> str:
        return f"{self.forward().grad_fn.name()}-{self.name}"  # type: ignore[union-attr]


def max_pool(spatial: int) -> Tensor:
    pool = functional.max_pool2d if spatial == 2 else functional.max_pool3d
    result: Tensor = pool(x(2, 3, *[4] * spatial), 2, return_indices=True)[0]
    return result


def fractional(spatial: int) -> Tensor:
    samples = torch.full((2, 3, spatial), 0.5, dtype=torch.float64)
    pool = aten.fractional_max_pool2d if spatial == 2 else aten.fractional_max_pool3d
    result: Tensor = pool(x(2, 3, *[5] * spatial), [2] * spatial, [2] * spatial, samples)[0]
    return result


def sparse_product(reduce: str) -> Tensor:
    with torch.no_grad():
        matrix = torch.eye(2, 3, dtype=torch.float64).to_sparse_csr()
    result: Tensor = torch.sparse.mm(matrix.requires_grad_(), x(3, 4), reduce)
    return result


def enlarged_gradient(name: str) -> Tensor:
    """The backward of an upsampling from 4x6 to 8x12, to be differentiated."""
    backward = getattr(aten, f"_upsample_{name}2d_aa_backward")
    result: Tensor = backward(x(1, 1, 8, 12), [8, 12], [1, 1, 4, 6], False, 2.0, 2.0)
    return result


def convolved(transposed: bool) -> Tensor:
    """A convolution by two groups from 5x6 to 5x5; transposed to 5x7."""
    result: Tensor = aten.convolution(
        x(2, 4, 5, 6), x(4, 2, 3, 2), None, [1, 1], [1, 0], [1, 1], transposed, [0, 0], 2
    )
    return result


def bag(mode: str) -> Tensor:
    return functional.embedding_bag(
        torch.tensor([0, 2, 1, 4, 3, 0]), x(5, 2), torch.tensor([0, 2, 3]), mode=mode
    )


def ctc(*, joined: bool = False) -> Tensor:
    targets = torch.tensor([1, 2, 3, 1]) if joined else torch.tensor([[1, 2], [3, 1]])
    result: Tensor = aten._ctc_loss(x(6, 2, 4).log_softmax(2), targets, [6, 5], [2, 2], 0, False)[0]
    return result


def segments(**given: Any) -> Tensor:
    result: Tensor = torch.segment_reduce(x(5, 2), "sum", **given)
    return result


def solve() -> Tensor:
    result: Tensor = torch.linalg.solve_ex(torch.eye(3, dtype=torch.float64).requires_grad_(), x(3, 2))[0]
    return result


def grid(spatial: int, padding: str = "zeros") -> Tensor:
    return functional.grid_sample(
        x(2, 3, *[4] * spatial), x(2, *[3] * spatial, spatial), padding_mode=padding, align_corners=False
    )


def grid_backward(padding: str) -> Tensor:
    result = grid(2, padding)
    weights = torch.ones_like(result, requires_grad=True)
    return torch.autograd.grad(result, result.grad_fn._saved_input, weights, create_graph=True)[0]  # type: ignore[union-attr]


ROWS = (
    Row(
        lambda: functional.adaptive_avg_pool2d(x(2, 3, 5, 5), 2),
        "grads",
        x(9, 3, 2, 2),
        "'grads' and 'self' must have the same sizes but for the last 2, got [9, 3, 2, 2] and [2, 3, 5, 5]",
    ),
    Row(
        lambda: functional.adaptive_avg_pool3d(x(2, 3, 5, 5, 5), 2),
        "self",
        x(2, 1, 5, 5, 5),
        "'grads' and 'self' must have the same sizes but for the last 3, got [2, 3, 2, 2, 2] and [2, 1, 5, 5, 5]",
    ),
    Row(
        lambda: functional.adaptive_max_pool2d(x(2, 3, 5, 5), 2),
        "result1",
        z(2, 3, 2, 1),
        "'grads' and 'result1' must have the same sizes, got [2, 3, 2, 2] and [2, 3, 2, 1]",
    ),
    Row(
        lambda: functional.adaptive_max_pool3d(x(2, 3, 4, 4, 4), 2),
        "result1",
        z(2, 3, 2, 2, 2, value=64),
        "'result1' must hold integers from 0 to 63, got 64",
    ),
    Row(
        lambda: max_pool(2),
        "result1",
        z(2, 3, 2, 2, value=-1),
        "'result1' must hold integers from 0 to 15, got -1",
    ),
    Row(
        lambda: max_pool(3),
        "self",
        x(1, 3, 4, 4, 4),
        "'grads' and 'self' must have the same sizes but for the last 3, got [2, 3, 2, 2, 2] and [1, 3, 4, 4, 4]",
    ),
    Row(
        lambda: fractional(2),
        "result1",
        z(2, 3, 2, 2, value=25),
        "'result1' must hold integers from 0 to 24, got 25",
    ),
    Row(
        lambda: fractional(2),
        "result1",
        z(2, 3, 2, 2).mT,
        "'result1' must be contiguous, got sizes [2, 3, 2, 2] and strides [12, 4, 1, 2]",
    ),
    Row(
        lambda: functional.adaptive_max_pool3d(x(2, 3, 4, 4, 4), 2),
        "result1",
        z(1).expand(2, 3, 2, 2, 2),
        "'result1' must lie in memory without gaps or overlaps, got sizes [2, 3, 2, 2, 2] and strides "
        "[0, 0, 0, 0, 0]",
    ),
    Row(
        lambda: fractional(3),
        "result1",
        z(0, 3, 2, 2, 2),
        "'grads' and 'result1' must have the same sizes, got [2, 3, 2, 2, 2] and [0, 3, 2, 2, 2]",
    ),
    Row(
        lambda: functional.pad(x(2, 3, 4), (1, 2), "reflect"),
        "grads",
        x(0, 3, 7),
        "'self' padded by [1, 2] has a gradient of sizes [2, 3, 7], got [0, 3, 7]",
    ),
    Row(
        lambda: functional.pad(x(2, 3, 4, 4), (1, 2, 0, 1), "reflect"),
        "self",
        x(4, 3, 4, 4),
        "'self' padded by [1, 2, 0, 1] has a gradient of sizes [4, 3, 5, 7], got [2, 3, 5, 7]",
    ),
    Row(
        lambda: functional.pad(x(2, 3, 4, 4), (1, 2, 0, 1), "replicate"),
        "padding",
        [1, 2, 0, 2**62],
        "'padding' must lie between -281474976710656 and 281474976710656, got 4611686018427387904",
    ),
    Row(
        lambda: functional.pad(x(3, 4), (1, 2), "replicate"),
        "padding",
        [1, 2, 0],
        "'padding' must have 2 elements, got 3",
    ),
    Row(
        lambda: grid(2),
        "grads",
        x(0, 3, 3, 3),
        "'input' of sizes [2, 3, 4, 4] taken at the points of 'grid' of sizes [2, 3, 3, 2] cannot give 'grads' of "
        "sizes [0, 3, 3, 3]",
    ),
    Row(
        lambda: grid(3),
        "grid",
        x(1, 3, 3, 3, 3),
        "'input' of sizes [2, 3, 4, 4, 4] taken at the points of 'grid' of sizes [1, 3, 3, 3, 3] cannot give 'grads' "
        "of sizes [2, 3, 3, 3, 3]",
    ),
    Row(
        lambda: grid(2, "border"),
        "grid",
        torch.full((2, 3, 3, 2), math.nan, dtype=torch.float64),
        "'grid' must hold finite numbers where padding_mode is not zeros, got nan",
    ),
    Row(
        lambda: grid(2, "reflection"),
        "grid",
        torch.full((2, 3, 3, 2), 1e308, dtype=torch.float64),
        "'grid' must hold finite numbers where padding_mode is not zeros, got 1e+308",
    ),
    Row(
        lambda: grid_backward("border"),
        "grid",
        torch.full((2, 3, 3, 2), -math.inf, dtype=torch.float64),
        "'grid' must hold finite numbers where padding_mode is not zeros, got -inf",
    ),
    Row(lambda: grid(2), "interpolation_mode", 7, "'interpolation_mode' must lie between 0 and 2, got 7"),
    Row(
        lambda: functional.multi_margin_loss(x(5, 4), z(5)),
        "grads",
        x(0),
        "'grads' must have 1 element, got 0",
    ),
    Row(
        lambda: functional.multi_margin_loss(x(5, 4), z(5), reduction="none"),
        "target",
        z(5, value=4),
        "'target' must hold integers from 0 to 3, got 4",
    ),
    Row(
        lambda: functional.multilabel_margin_loss(x(5, 4), z(5, 4), reduction="none"),
        "is_target",
        x(5, 3),
        "'is_target' must have 20 elements, got 15",
    ),
    Row(
        lambda: functional.nll_loss(x(5, 4), z(5)),
        "target",
        z(5, value=10**6),
        "'target' must hold classes from 0 to 3, or -100, which is ignored, got 1000000",
    ),
    Row(
        lambda: functional.nll_loss(x(5, 4, 2, 2), z(5, 2, 2)),
        "target",
        z(5, 2, 2, value=-1),
        "'target' must hold classes from 0 to 3, or -100, which is ignored, got -1",
    ),
    Row(
        lambda: segments(lengths=torch.tensor([2, 3])),
        "lengths",
        torch.tensor([2, 10**7]),
        "'lengths' must stay within the 5 elements of dimension 0, got 10000000",
    ),
    Row(
        lambda: segments(offsets=torch.tensor([0, 2, 5])),
        "offsets",
        torch.tensor([0, 2, 1]),
        "'offsets' must stay within the 5 elements of dimension 0, got 1",
    ),
    Row(
        lambda: segments(lengths=torch.tensor([2, 3])),
        "lengths",
        torch.tensor([2, 2, 1]),
        "segments of 'data' with sizes [5, 2] along dimension 0, given by 'lengths' with sizes [3], cannot give "
        "'result' with sizes [2, 2]",
    ),
    Row(
        lambda: segments(lengths=torch.tensor([2, 3])),
        "axis",
        2,
        "'axis' must be a dimension of 'data' with 2 dimensions, got 2",
    ),
    Row(
        lambda: segments(lengths=torch.tensor([2, 3])),
        "lengths",
        None,
        "'lengths' or 'offsets' must be given",
    ),
    Row(ctc, "input_lengths", [], "'input_lengths' must have 2 elements, got 0"),
    Row(ctc, "input_lengths", [6, 7], "'input_lengths' must lie between 0 and 6, got 7"),
    Row(ctc, "target_lengths", [2, 3], "'target_lengths' must lie between 0 and 2, got 3"),
    Row(ctc, "blank", 4, "'blank' must lie between 0 and 3, got 4"),
    Row(
        ctc,
        "targets",
        torch.tensor([[1, 2], [3, 4]]),
        "'targets' must lie between 0 and 3, got 4",
    ),
    Row(
        lambda: ctc(joined=True),
        "targets",
        torch.tensor([1, 2, 3]),
        "'target_lengths' must lie between 0 and 1, got 2",
    ),
    Row(
        ctc,
        "result1",
        x(2, 6, 4),
        "'result1' must have the sizes [2, 6, 5] or more in the last dimension, got [2, 6, 4]",
    ),
    *(
        Row(
            lambda reduce=reduce: sparse_product(reduce),  # type: ignore[misc]
            "result1",
            z(0),
            "'grads' and 'result1' must have the same sizes, got [2, 4] and [0]",
        )
        for reduce in ("amax", "amin", "max", "min")
    ),
    Row(
        lambda: sparse_product("amin"),
        "result1",
        z(2, 4, value=3),
        "'result1' must hold integers from 0 to 2, got 3",
    ),
    Row(
        lambda: sparse_product("sum"),
        "grads",
        x(4, 2),
        "the gradient must have the sizes of the product of 'self' and 'other', got [4, 2] for [2, 3] and [3, 4]",
    ),
    Row(
        lambda: sparse_product("mean"),
        "other",
        x(2, 4),
        "the gradient must have the sizes of the product of 'self' and 'other', got [2, 4] for [2, 3] and [2, 4]",
    ),
    *(
        Row(
            lambda name=name: enlarged_gradient(name),  # type: ignore[misc]
            "grads",
            x(1, 1, 4, 1),
            "an image of 1 columns cannot be brought to 12 by the scale 2",
        )
        for name in ("bilinear", "bicubic", "lanczos")
    ),
    Row(
        lambda: enlarged_gradient("bilinear"),
        "scales_h",
        0.5,
        "an image of 4 rows cannot be brought to 8 by the scale 0.5",
    ),
    Row(
        lambda: torch.pdist(x(3, 2)),
        "self",
        x(0, 2),
        "'self' must hold at least one point",
    ),
    Row(
        lambda: torch.linalg.lu_factor_ex(x(2, 4, 3))[0],
        "pivots",
        z(3).int(),
        "'pivots' must have sizes [2, 3] for the matrices 'LU' of sizes [2, 4, 3], got [3]",
    ),
    *(
        Row(
            lambda transposed=transposed: convolved(transposed),  # type: ignore[misc]
            "grads",
            x(*sizes),
            f"the gradient is not that of such a convolution: sizes of 'grads' {list(sizes)}, of 'input' "
            "[2, 4, 5, 6], of 'weight' [4, 2, 3, 2]",
        )
        for transposed in (False, True)
        for sizes in ((0, 4, 5, 5), (2, 4, 5, 30), (2, 3, 5, 5), (4, 5, 5), ())
    ),
    *(
        Row(lambda: convolved(False), name, value, text)
        for name, value, text in (
            ("stride", [0, 1], "'stride' must lie between 1 and 1073741824, got 0"),
            ("dilation", [1, -1], "'dilation' must lie between 1 and 1073741824, got -1"),
            ("padding", [-1, 0], "'padding' must lie between 0 and 1073741824, got -1"),
            ("groups", 0, "'groups' must be greater than zero, got 0"),
            (
                "groups",
                4,
                "the channels do not fit together: sizes of 'grads' [2, 4, 5, 5], of 'input' [2, 4, 5, 6], of "
                "'weight' [4, 2, 3, 2]",
            ),
            (
                "stride",
                [1, 1, 1],
                "stride, padding, dilation and output padding must have one number for each dimension: sizes of "
                "'grads' [2, 4, 5, 5], of 'input' [2, 4, 5, 6], of 'weight' [4, 2, 3, 2]",
            ),
            (
                "input",
                x(6),
                "no convolution takes such tensors: sizes of 'grads' [2, 4, 5, 5], of 'input' [6], of 'weight' "
                "[4, 2, 3, 2]",
            ),
        )
    ),
    Row(
        lambda: torch.ops.aten.convolution_backward(
            x(2, 4, 3, 5),
            x(2, 4, 5, 6),
            x(4, 4, 3, 2),
            None,
            [1, 1],
            [0, 0],
            [1, 1],
            False,
            [0, 0],
            1,
            [True, True, False],
        )[0],
        "grad_output",
        x(),
        "the gradient is not that of such a convolution: sizes of 'grad_output' [], of 'input' [2, 4, 5, 6], of "
        "'weight' [4, 4, 3, 2]",
    ),
    Row(
        lambda: functional.adaptive_avg_pool3d(x(1, 2, 4, 3, 3), (2, 3, 3)),
        "self",
        x(1, 2, 0, 3, 3),
        "'self' has no elements that could be pooled, got sizes [1, 2, 0, 3, 3]",
    ),
    Row(
        lambda: functional.glu(x(4), 0),
        "grads",
        x(3),
        "'grads' must have the sizes of 'self', but half as many along dimension 0, got [3] and [4]",
    ),
    Row(
        lambda: aten.glu_backward(x(2), x(4), 0),
        "grad_output",
        x(1),
        "'grad_output' must have the sizes of 'self', but half as many along dimension 0, got [1] and [4]",
    ),
    Row(
        lambda: x(3, 3).trace(),
        "self_sym_sizes",
        [-4, -2],
        "'self_sym_sizes' must hold no negative size, got [-4, -2]",
    ),
    Row(
        lambda: functional.embedding(z(3, value=2), x(4, 2), scale_grad_by_freq=True),
        "weight_sym_argsize_0",
        2,
        "'indices' must hold integers from 0 to 1, got 2",
    ),
    Row(
        lambda: functional.batch_norm(x(3, 4), x(4).detach(), x(4).detach().abs(), x(4)),
        "weight",
        x(1).expand(4),
        "'weight' must have memory for its 4 elements one behind the other, got strides [0]",
    ),
    *(
        Row(
            lambda pool=pool, spatial=spatial: pool(x(1, 2, *[4] * spatial), 2),  # type: ignore[misc]
            "self",
            x(2, 2, *[4] * spatial),
            f"'grads' and 'self' must have the same sizes but for the last {spatial}, got "
            f"{[1, 2, *[2] * spatial]} and {[2, 2, *[4] * spatial]}",
        )
        for spatial, pool in ((2, functional.avg_pool2d), (3, functional.avg_pool3d))
    ),
    Row(lambda: bag("mean"), "indices", z(6, value=5), "'indices' must hold integers from 0 to 4, got 5"),
    Row(lambda: bag("mean"), "result1", z(6, value=3), "'result1' must hold integers from 0 to 2, got 3"),
    Row(lambda: bag("mean"), "result1", z(5), "'result1' must have 6 elements, got 5"),
    Row(
        lambda: bag("mean"),
        "result2",
        z(2),
        "'result2' must have one element for each of the 3 bags, got 2",
    ),
    Row(lambda: bag("max"), "result3", z(3, 2, value=5), "'result3' must hold integers from -1 to 4, got 5"),
    Row(lambda: bag("sum"), "mode", 3, "'mode' must lie between 0 and 2, got 3"),
    Row(
        solve,
        "pivots",
        torch.tensor([1, 2, 4], dtype=torch.int32),
        "'pivots' must hold integers from 1 to 3, got 4",
    ),
    Row(
        lambda: torch._weight_norm_interface(x(3, 4), x(3, 1), 0)[0],
        "g",
        x(2, 1),
        "'g' must have 3 elements, got 2",
    ),
    Row(
        lambda: torch._weight_norm_interface(x(3, 4), x(3, 1), 0)[0],
        "dim",
        5,
        "'dim' must be the first or the last dimension of 'v' with 2 dimensions, got 5",
    ),
    Row(
        lambda: x(7, 2).unfold(0, 3, 2),
        "grads",
        x(300, 2, 3),
        "a tensor of sizes [7, 2] unfolded has a gradient of sizes [3, 2, 3], got [300, 2, 3]",
    ),
    Row(lambda: x(7, 2).unfold(0, 3, 2), "step", 0, "'step' must be greater than zero, got 0"),
)


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_a_changed_value_is_refused(row: Row) -> None:
    result = row.forward()
    node: Any = result.grad_fn
    operator: Any = backbind.ops.for_node(node)
    grads: list[Any] = [None] * len(node._input_metadata)
    grads[result.output_nr] = torch.ones_like(result)
    arguments: list[Any] = [grads, *backbind.pack(node)]
    left, right = operator(*arguments)[0], node(*grads)
    right = right if isinstance(right, Tensor) else right[0]
    assert same_bits(left, right)
    names = ["grads", "needs_input_grad", *(one.name for one in operator.saved)]
    if row.name == "grads":
        grads[result.output_nr] = row.value
    else:
        arguments[names.index(row.name)] = row.value
    for face in (operator, operator.delegate, operator.overload):
        assert message(ValueError, lambda: face(*arguments)) == f"{operator.name}: {row.text}"  # noqa: B023


def test_targets_behind_their_length_are_nobodys() -> None:
    targets = torch.tensor([[1, -7], [3, 1]])
    result = aten._ctc_loss(x(6, 2, 4), targets, [6, 5], [1, 2], 0, False)[0]
    (gradient,) = backbind.ops.for_node(result.grad_fn)(
        [torch.ones(2).double()], *backbind.pack(result.grad_fn)
    )
    assert gradient is not None


def test_numbers_are_read_unseen() -> None:
    """Looking at indices is nothing that a mode would see."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.names: list[str] = []

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.names.append(function.name())
            return function(*args, **(kwargs or {}))

    result = max_pool(2)
    node: Any = result.grad_fn
    packed = backbind.pack(node)
    with torch.no_grad(), Seen() as seen:
        backbind.ops.for_node(node)([torch.ones_like(result)], *packed)
    assert seen.names == ["aten::ones_like", "aten::max_pool2d_with_indices_backward"]
