"""One program for each node that no operator of torch's own lists leads to. To be read as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from tests.oracle.programs import Program, Sample, sample_of_call

aten = torch.ops.aten


@dataclass(frozen=True)
class Extra:
    """A call whose graph has a node of the given name."""

    node: str
    function: Callable[..., object]
    arguments: Callable[[], tuple[Any, ...]]
    keywords: dict[str, Any] = field(default_factory=dict)

    def program(self) -> Program:
        def samples() -> Iterator[Sample]:
            yield sample_of_call(self.function, self.arguments(), self.keywords)

        return Program("extra", self.node, samples)


def leaf(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype).requires_grad_()


def positive(*shape: int) -> torch.Tensor:
    return torch.rand(shape, dtype=torch.float64).add_(0.1).requires_grad_()


def floats(*shape: int) -> torch.Tensor:
    return leaf(*shape, dtype=torch.float32)


def halves(*shape: int) -> torch.Tensor:
    return leaf(*shape, dtype=torch.bfloat16)


def integers(*values: int) -> torch.Tensor:
    return torch.tensor(values)


def nested(*shapes: tuple[int, ...]) -> torch.Tensor:
    parts = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    return torch.nested.nested_tensor(parts, requires_grad=True)


def jagged() -> torch.Tensor:
    values = torch.randn(5, 3, dtype=torch.float64)
    return torch.nested.nested_tensor_from_jagged(values, integers(0, 2, 5)).detach().requires_grad_()


def coo(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64).to_sparse().requires_grad_()


def uncoalesced() -> torch.Tensor:
    values = torch.randn(3, dtype=torch.float64)
    return torch.sparse_coo_tensor(torch.tensor([[0, 1, 1]]), values, (3,)).requires_grad_()


def in_place(name: str) -> Callable[..., object]:
    """The in-place method on a copy, since a leaf may not be written to."""
    return lambda first, *rest, **keywords: getattr(first.clone(), name)(*rest, **keywords)


def _unbound(function: Callable[..., object], tensor: torch.Tensor, *rest: Any) -> object:
    return list(function(tensor, *rest))  # type: ignore[call-overload]


def _slice_and_back(tensor: torch.Tensor, *place: int) -> object:
    whole = tensor.clone()
    return aten.slice_inverse(aten.slice(whole, *place), whole, *place)


MATRIX = partial(leaf, 3, 4)
IMAGE = partial(leaf, 1, 2, 5, 5)
VOLUME = partial(leaf, 1, 2, 4, 4, 4)
NESTED = partial(nested, (2, 3), (4, 3))

COMPARISONS = [
    Extra(f"{name.capitalize()}Backward{number}", in_place(f"{name}_"), arguments)
    for name in ("eq", "ge", "gt", "le", "lt", "ne")
    for number, arguments in enumerate((lambda: (MATRIX(), 0.5), lambda: (MATRIX(), MATRIX())))
]

RANDOM = [
    Extra(
        "BernoulliBackward1",
        in_place("bernoulli_"),
        lambda: (MATRIX(), torch.rand(3, 4).double().requires_grad_()),
    ),
    Extra("BernoulliBackward2", in_place("bernoulli_"), lambda: (MATRIX(), 0.5)),
    Extra("CauchyBackward0", in_place("cauchy_"), lambda: (MATRIX(),)),
    Extra("ExponentialBackward0", in_place("exponential_"), lambda: (MATRIX(),)),
    Extra("GeometricBackward0", in_place("geometric_"), lambda: (MATRIX(), 0.5)),
    Extra("LogNormalBackward0", in_place("log_normal_"), lambda: (MATRIX(),)),
    Extra("NativeDropoutBackward0", aten.native_dropout, lambda: (MATRIX(), 0.5, True)),
    Extra("NormalBackward0", in_place("normal_"), lambda: (MATRIX(),)),
    Extra("NormalBackward2", torch.normal, lambda: (0.0, positive(3, 4))),
    Extra("PoissonBackward0", torch.poisson, lambda: (positive(3, 4),)),
    Extra("RandomBackward0", in_place("random_"), lambda: (MATRIX(), 1, 5)),
    Extra("RandomBackward1", in_place("random_"), lambda: (MATRIX(), 5)),
    Extra("RandomBackward2", in_place("random_"), lambda: (MATRIX(),)),
    Extra(
        "RreluWithNoiseFunctionalBackward0",
        aten.rrelu_with_noise_functional,
        lambda: (MATRIX(), torch.rand(3, 4).double(), 0.1, 0.3, True),
    ),
    Extra("StandardGammaBackward0", aten._standard_gamma, lambda: (positive(3, 4),)),
    Extra(
        "StandardGammaGradBackward0",
        aten._standard_gamma_grad,
        lambda: (positive(3, 4), torch.rand(3, 4).double()),
    ),
    Extra("UniformBackward0", in_place("uniform_"), lambda: (MATRIX(),)),
]

SCALARS = [
    Extra("DivBackward3", aten.div.Scalar_mode, lambda: (MATRIX(), 2.0), {"rounding_mode": "floor"}),
    Extra("FillBackward1", aten.fill.Tensor, lambda: (MATRIX(), leaf())),
    Extra("FillBackward3", in_place("fill_"), lambda: (MATRIX(), leaf())),
    Extra("FmodBackward0", aten.fmod.Scalar, lambda: (MATRIX(), 0.3)),
    Extra("ForeachPowBackward2", torch._foreach_pow, lambda: (2.0, [MATRIX(), leaf(2)])),
    Extra("NormBackward0", aten.norm.Scalar, lambda: (MATRIX(), 2)),
    Extra("NormBackward2", aten.norm.ScalarOpt_dtype, lambda: (floats(3, 4), 3), {"dtype": torch.float64}),
    Extra(
        "NormBackward3",
        aten.norm.ScalarOpt_dim_dtype,
        lambda: (floats(3, 4), 2, [1], False),
        {"dtype": torch.float64},
    ),
    Extra("RemainderBackward0", aten.remainder.Scalar, lambda: (MATRIX(), 0.3)),
    Extra("SpecialXlog1PyBackward1", aten.special_xlog1py.self_scalar, lambda: (0.5, positive(3, 4))),
    Extra("SpecialXlog1PyBackward2", aten.special_xlog1py.other_scalar, lambda: (MATRIX(), 0.5)),
    Extra("SpecialZetaBackward1", aten.special_zeta.self_scalar, lambda: (2.5, positive(3, 4))),
    Extra("SpecialZetaBackward2", aten.special_zeta.other_scalar, lambda: (positive(3, 4), 1.5)),
    Extra("XlogyBackward1", aten.xlogy.Scalar_Self, lambda: (0.5, positive(3, 4))),
    Extra("XlogyBackward2", aten.xlogy.Scalar_Other, lambda: (MATRIX(), 0.5)),
]

VIEWS = [
    Extra("AliasBackward0", aten.alias, lambda: (MATRIX(),)),
    Extra("LazyCloneBackward0", aten._lazy_clone, lambda: (MATRIX(),)),
    Extra("LiftBackward0", aten.lift, lambda: (MATRIX(),)),
    Extra("LiftFreshBackward0", aten.lift_fresh, lambda: (MATRIX(),)),
    Extra("LiftFreshBackward0_copy", aten.lift_fresh_copy, lambda: (MATRIX(),)),
    Extra("NegViewBackward0", aten._neg_view, lambda: (MATRIX(),)),
    Extra("NegViewBackward0_copy", aten._neg_view_copy, lambda: (MATRIX(),)),
    Extra("ReshapeAliasBackward0_copy", aten._reshape_alias_copy, lambda: (MATRIX(), [4, 3], [3, 1])),
    Extra("ReshapeCopyBackward0", aten._reshape_copy, lambda: (MATRIX(), [4, 3])),
    Extra("SelectBackward0_copy", aten.select_copy.int, lambda: (MATRIX(), 1, -1)),
    Extra("SliceBackward0_copy", aten.slice_copy.Tensor, lambda: (MATRIX(), 1, 0, 4, 2)),
    Extra("SliceInverseBackward0", _slice_and_back, lambda: (MATRIX(), 1, 1, 3, 1)),
    Extra("SplitBackward0_copy", aten.split_copy.Tensor, lambda: (MATRIX(), 3, 1)),
    Extra("SqueezeBackward2_copy", aten.squeeze_copy.dims, lambda: (leaf(3, 1, 1), [1, 2])),
    Extra("UnsafeSplitWithSizesBackward0", aten.unsafe_split_with_sizes, lambda: (MATRIX(), [1, 3], 1)),
    Extra("ViewAsRealBackward0_copy", aten.view_as_real_copy, lambda: (leaf(3, dtype=torch.complex128),)),
]

INDEXING = [
    Extra(
        "EmbeddingBagDenseBackwardBackward0",
        aten._embedding_bag_dense_backward,
        lambda: (
            floats(2, 3),
            integers(0, 1, 2),
            integers(0, 0, 1),
            integers(2, 1),
            integers(0, 0),
            4,
            False,
            0,
            None,
        ),
    ),
    Extra(
        "EmbeddingRenormBackward0",
        lambda weight, *rest: torch.embedding_renorm_(weight.clone(), *rest),
        lambda: (MATRIX(), integers(0, 2), 0.5, 2.0),
    ),
    Extra("UniqueBackward0", aten._unique, lambda: (MATRIX(),)),
    Extra("UniqueDimConsecutiveBackward0", aten.unique_dim_consecutive, lambda: (MATRIX(), 0)),
    Extra("UnsafeIndexBackward0", aten._unsafe_index, lambda: (MATRIX(), [None, integers(0, 2, 2)])),
    Extra(
        "UnsafeIndexPutBackward0",
        aten._unsafe_index_put,
        lambda: (MATRIX(), [integers(0, 2)], leaf(2, 4), True),
    ),
]

LAYERS = [
    Extra(
        "AffineGridGeneratorBackward0",
        aten.affine_grid_generator,
        lambda: (leaf(1, 2, 3), [1, 1, 3, 3], True),
    ),
    Extra(
        "BatchNormNoUpdateBackward0",
        aten._batch_norm_no_update,
        lambda: (MATRIX(), leaf(4), leaf(4), torch.zeros(4).double(), torch.ones(4).double(), 0.1, 1e-5),
    ),
    Extra("ConvTbcBackward0", torch.conv_tbc, lambda: (leaf(5, 2, 3), leaf(2, 3, 4), leaf(4), 1)),
    Extra(
        "ConvolutionBackward1",
        aten._convolution,
        lambda: (
            IMAGE(),
            leaf(3, 2, 3, 3),
            leaf(3),
            [1, 1],
            [0, 0],
            [1, 1],
            False,
            [0, 0],
            1,
            False,
            False,
            False,
            False,
        ),
    ),
    Extra(
        "CtcLossBackward1",
        aten._ctc_loss.Tensor,
        lambda: (
            leaf(5, 2, 4).log_softmax(2),
            torch.tensor([[1, 2], [3, 1]]),
            integers(5, 5),
            integers(2, 2),
        ),
    ),
    Extra(
        "GridSampler2DCpuFallbackBackward0",
        aten._grid_sampler_2d_cpu_fallback,
        lambda: (floats(1, 2, 5, 5), floats(1, 3, 3, 2), 0, 0, True),
    ),
    Extra(
        "GridSampler2DCpuFallbackBackwardBackward0",
        aten._grid_sampler_2d_cpu_fallback_backward,
        lambda: (floats(1, 2, 3, 3), floats(1, 2, 5, 5), floats(1, 3, 3, 2), 0, 0, True),
    ),
    Extra(
        "GroupedMmBackward0",
        aten._grouped_mm,
        lambda: (halves(16, 16), halves(2, 16, 16), torch.tensor([8, 16], dtype=torch.int32)),
    ),
    Extra("MaskedSoftmaxBackward0", aten._masked_softmax, lambda: (MATRIX(), torch.rand(3, 4) > 0.5, 1)),
    Extra(
        "NativeBatchNormLegitNoTrainingBackward0",
        aten._native_batch_norm_legit_no_training,
        lambda: (MATRIX(), leaf(4), leaf(4), torch.zeros(4).double(), torch.ones(4).double(), 0.1, 1e-5),
    ),
    Extra(
        "PackPaddedSequenceBackward0",
        aten._pack_padded_sequence,
        lambda: (leaf(3, 2, 4), integers(3, 2), False),
    ),
    Extra(
        "SlowConv2DBackward0",
        aten._slow_conv2d_forward,
        lambda: (IMAGE(), leaf(3, 2, 3, 3), [3, 3], leaf(3), [1, 1], [0, 0]),
    ),
    Extra(
        "SlowConv2DBackwardBackward0",
        aten._slow_conv2d_backward.output_mask,
        lambda: (leaf(1, 3, 3, 3), IMAGE(), leaf(3, 2, 3, 3), [3, 3], [1, 1], [0, 0], [True, True, True]),
    ),
    Extra(
        "SlowConv3DBackward0",
        aten.slow_conv3d_forward,
        lambda: (VOLUME(), leaf(3, 2, 2, 2, 2), [2, 2, 2], leaf(3), [1, 1, 1], [0, 0, 0]),
    ),
    Extra(
        "SlowConvDilated2DBackward0",
        aten.slow_conv_dilated2d,
        lambda: (IMAGE(), leaf(3, 2, 2, 2), [2, 2], leaf(3), [1, 1], [0, 0], [2, 2]),
    ),
    Extra(
        "SlowConvDilated3DBackward0",
        aten.slow_conv_dilated3d,
        lambda: (VOLUME(), leaf(3, 2, 2, 2, 2), [2, 2, 2], leaf(3), [1, 1, 1], [0, 0, 0], [2, 2, 2]),
    ),
    Extra(
        "SlowConvTranspose2DBackward0",
        aten.slow_conv_transpose2d,
        lambda: (IMAGE(), leaf(2, 3, 2, 2), [2, 2], leaf(3)),
    ),
    Extra(
        "SlowConvTranspose3DBackward0",
        aten.slow_conv_transpose3d,
        lambda: (VOLUME(), leaf(2, 3, 2, 2, 2), [2, 2, 2], leaf(3)),
    ),
    Extra("UpsampleBicubic2DAaBackward0", aten._upsample_bicubic2d_aa, lambda: (IMAGE(), [3, 3], True)),
    Extra(
        "UpsampleBicubic2DAaBackwardBackward0",
        aten._upsample_bicubic2d_aa_backward,
        lambda: (leaf(1, 2, 3, 3), [3, 3], [1, 2, 5, 5], True),
    ),
    Extra("UpsampleLanczos2DAaBackward0", aten._upsample_lanczos2d_aa, lambda: (IMAGE(), [3, 3], True)),
    Extra(
        "UpsampleLanczos2DAaBackwardBackward0",
        aten._upsample_lanczos2d_aa_backward,
        lambda: (leaf(1, 2, 3, 3), [3, 3], [1, 2, 5, 5], True),
    ),
    Extra("WeightNormInterfaceBackward0", aten._weight_norm_interface, lambda: (MATRIX(), leaf(3, 1), 0)),
]

QUANTIZED = [
    Extra(
        "FakeQuantizeLearnablePerChannelAffineBackward0",
        aten._fake_quantize_learnable_per_channel_affine,
        lambda: (
            floats(3, 4),
            floats(4).detach().abs().requires_grad_(),
            torch.zeros(4).requires_grad_(),
            1,
            0,
            255,
        ),
    ),
    Extra(
        "FakeQuantizeLearnablePerTensorAffineBackward0",
        aten._fake_quantize_learnable_per_tensor_affine,
        lambda: (floats(3, 4), torch.tensor([0.1]).requires_grad_(), torch.zeros(1).requires_grad_(), 0, 255),
    ),
    Extra(
        "FakeQuantizePerChannelAffineCachemaskBackward0",
        aten.fake_quantize_per_channel_affine_cachemask,
        lambda: (floats(3, 4), torch.rand(4), torch.zeros(4, dtype=torch.int32), 1, 0, 255),
    ),
    Extra(
        "FakeQuantizePerTensorAffineCachemaskBackward0",
        aten.fake_quantize_per_tensor_affine_cachemask,
        lambda: (floats(3, 4), 0.1, 0, 0, 255),
    ),
    Extra(
        "FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0",
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
        lambda: (
            floats(3, 4),
            torch.tensor(0.1),
            torch.tensor(0, dtype=torch.int32),
            torch.tensor(1),
            0,
            255,
        ),
    ),
    Extra(
        "FusedMovingAvgObsFqHelperBackward0",
        aten._fused_moving_avg_obs_fq_helper,
        lambda: (
            floats(3, 4),
            torch.tensor([1]),
            torch.tensor([1]),
            torch.zeros(1),
            torch.ones(1),
            torch.ones(1),
            torch.zeros(1, dtype=torch.int32),
            0.01,
            0,
            255,
            -1,
            False,
            False,
        ),
    ),
]

SPARSE = [
    Extra("CoalesceBackward0", aten._coalesce, lambda: (uncoalesced(),)),
    Extra(
        "SparseAddmmBackward0",
        aten._sparse_addmm,
        lambda: (leaf(3, 2), coo(3, 4), leaf(4, 2)),
        {"beta": 2, "alpha": 3},
    ),
    Extra(
        "SparseCompressedTensorBackward0",
        aten.sparse_compressed_tensor.comp_plain_value_size,
        lambda: (integers(0, 1, 2), integers(0, 1), leaf(2), [2, 2]),
        {"layout": torch.sparse_csr, "dtype": torch.float64},
    ),
    Extra(
        "SparseCooTensorWithDimsAndTensorsBackward0",
        aten._sparse_coo_tensor_with_dims_and_tensors,
        lambda: (1, 0, [3], torch.tensor([[0, 2]]), leaf(2)),
        {"dtype": torch.float64, "layout": torch.sparse_coo},
    ),
    Extra("SparseLogSoftmaxBackward0", aten._sparse_log_softmax.default, lambda: (coo(3, 4), 1, False)),
    Extra("SparseSoftmaxBackward0", aten._sparse_softmax.default, lambda: (coo(3, 4), 1, False)),
    Extra("SparseSparseMatmulBackward0", aten._sparse_sparse_matmul, lambda: (coo(3, 4), coo(4, 2))),
    Extra("SparseSumBackward0", aten._sparse_sum.dim, lambda: (coo(3, 4), [1])),
    Extra("ToMkldnnBackward0", aten.to_mkldnn, lambda: (floats(3, 4),)),
    Extra("ToSparseBscBackward0", aten._to_sparse_bsc, lambda: (MATRIX(), [1, 2])),
    Extra("ToSparseBsrBackward0", aten._to_sparse_bsr, lambda: (MATRIX(), [1, 2])),
    Extra("ToSparseCscBackward0", aten._to_sparse_csc, lambda: (MATRIX(),)),
    Extra("ToSparseCsrBackward0", aten._to_sparse_csr, lambda: (MATRIX(),)),
    Extra("ValuesBackward0", aten.values, lambda: (coo(3, 4).detach().coalesce().requires_grad_(),)),
]

MKLDNN = [
    Extra(
        "MkldnnAdaptiveAvgPool2DBackward0",
        lambda x: aten.mkldnn_adaptive_avg_pool2d(x.to_mkldnn(), [2, 2]),
        lambda: (floats(1, 2, 4, 4),),
    ),
    Extra(
        "MkldnnConvolutionBackward0",
        aten.mkldnn_convolution,
        lambda: (floats(1, 2, 5, 5), floats(3, 2, 3, 3), floats(3), [0, 0], [1, 1], [1, 1], 1),
    ),
    Extra(
        "MkldnnLinearBackward0",
        lambda x, *rest: aten.mkldnn_linear(x.to_mkldnn(), *rest),
        lambda: (floats(3, 4), floats(2, 4), floats(2)),
    ),
    Extra(
        "MkldnnMaxPool2DBackward0",
        lambda x: aten.mkldnn_max_pool2d(x.to_mkldnn(), [2, 2], [2, 2]),
        lambda: (floats(1, 2, 4, 4),),
    ),
    Extra(
        "MkldnnMaxPool3DBackward0",
        lambda x: aten.mkldnn_max_pool3d(x.to_mkldnn(), [2, 2, 2], [2, 2, 2]),
        lambda: (floats(1, 2, 4, 4, 4),),
    ),
    Extra(
        "MkldnnReshapeBackward0",
        lambda x: aten._mkldnn_reshape(x.to_mkldnn(), [4, 3]),
        lambda: (floats(3, 4),),
    ),
    Extra(
        "NnpackSpatialConvolutionBackward0",
        aten._nnpack_spatial_convolution,
        lambda: (floats(1, 2, 5, 5), floats(3, 2, 3, 3), floats(3), [0, 0], [1, 1]),
    ),
]

NESTED_TENSORS = [
    Extra(
        "SplitWithSizesBackwardAutogradNestedTensor0", torch.split_with_sizes, lambda: (NESTED(), [1, 2], -1)
    ),
    Extra("LinearBackwardBackward0", torch.nn.functional.linear, lambda: (NESTED(), leaf(2, 3), leaf(2))),
    Extra(
        "NestedFromPaddedBackward0",
        aten._nested_from_padded,
        lambda: (leaf(2, 4, 3), torch.tensor([[2, 3], [4, 3]])),
    ),
    Extra(
        "NestedFromPaddedTensorBackward0",
        lambda padded, like: aten._nested_from_padded_tensor(
            padded,
            like.offsets(),
            like._lengths or torch.nested._internal.nested_tensor._nt_view_dummy(),
            1,
            None,
            None,
        ),
        lambda: (leaf(2, 3, 3), jagged().detach()),
    ),
    Extra("NestedGetValuesBackward0", lambda x: x.values(), lambda: (jagged(),)),
    Extra(
        "NestedTensorFromMaskBackward0",
        aten._nested_tensor_from_mask,
        lambda: (leaf(2, 3, 4), torch.tensor([[1, 1, 0], [1, 1, 1]]).bool()),
    ),
    Extra(
        "NestedTensorFromTensorListBackward0",
        aten._nested_tensor_from_tensor_list,
        lambda: ([leaf(2, 3), leaf(4, 3)],),
    ),
    Extra(
        "NestedViewFromBufferBackward0",
        aten._nested_view_from_buffer,
        lambda: (leaf(18), torch.tensor([[2, 3], [4, 3]]), torch.tensor([[3, 1], [3, 1]]), integers(0, 6)),
    ),
    Extra(
        "NestedViewFromBufferBackward0_copy",
        aten._nested_view_from_buffer_copy,
        lambda: (leaf(18), torch.tensor([[2, 3], [4, 3]]), torch.tensor([[3, 1], [3, 1]]), integers(0, 6)),
    ),
    Extra("SqueezeBackwardAutogradNestedTensor1", aten.squeeze.dims, lambda: (nested((2, 1), (3, 1)), [-1])),
    Extra("ToPaddedTensorBackward0", torch.nested.to_padded_tensor, lambda: (NESTED(), 0.0)),
    Extra(
        "SumBackwardAutogradNestedTensor1",
        lambda tensor: torch.nested.to_padded_tensor(aten.sum(tensor, [-1], keepdim=True), 0.0),
        lambda: (NESTED(),),
    ),
    Extra("UnbindBackwardAutogradNestedTensor0", _unbound, lambda: (torch.unbind, NESTED())),
    Extra("ValuesBackwardAutogradNestedTensor0", aten.values, lambda: (NESTED(),)),
]

DISPATCH_TESTS = [
    Extra(
        "TestAutogradMultipleDispatchBackward0",
        aten._test_autograd_multiple_dispatch.fullcoverage,
        lambda: (MATRIX(),),
    ),
    Extra(
        "TestAutogradMultipleDispatchBackwardAutogradNestedTensor0",
        aten._test_autograd_multiple_dispatch.fullcoverage,
        lambda: (NESTED(),),
    ),
    Extra(
        "TestAutogradMultipleDispatchBackwardAutogradNestedTensor1",
        aten._test_autograd_multiple_dispatch.ntonly,
        lambda: (NESTED(), True),
    ),
    Extra(
        "TestAutogradMultipleDispatchViewBackward0",
        aten._test_autograd_multiple_dispatch_view,
        lambda: (MATRIX(),),
    ),
    Extra(
        "TestAutogradMultipleDispatchViewBackward0_copy",
        aten._test_autograd_multiple_dispatch_view_copy,
        lambda: (MATRIX(),),
    ),
    Extra("TestWarnInAutogradBackward0", aten._test_warn_in_autograd, lambda: (MATRIX(),)),
]

EXTRAS = [
    *COMPARISONS,
    *RANDOM,
    *SCALARS,
    *VIEWS,
    *INDEXING,
    *LAYERS,
    *QUANTIZED,
    *SPARSE,
    *MKLDNN,
    *NESTED_TENSORS,
    *DISPATCH_TESTS,
]


def extra_programs() -> list[Program]:
    """A program for each row."""
    return [extra.program() for extra in EXTRAS]
