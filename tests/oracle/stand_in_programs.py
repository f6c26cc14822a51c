"""Nodes whose kernels this machine lacks, run with stand-ins. To be read as a table, as extra_programs is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from tests.oracle.extra_programs import Extra, aten, leaf, nested
from tests.oracle.programs import Program, Sample
from tests.oracle.stand_in_kernels import Kernel, digesting_kernel, stand_ins


@dataclass(frozen=True)
class StandIn:
    """A call whose graph has a node of the given name once the given kernels stand in."""

    lacking: str
    """What has the kernels, or why there are none."""
    extra: Extra
    kernels: dict[str, Kernel]
    """A kernel for each operator that needs one, in the forward or in the backward."""
    key: str = "CPU"
    """The dispatch key that the kernels are for."""

    def program(self) -> Program:
        plain = self.extra.program()

        def samples() -> Iterator[Sample]:
            # The kernels stay while the samples are checked, until the last one has been asked for.
            with stand_ins(self.kernels, self.key):
                yield from plain.samples()

        return Program("stand_in", plain.name, samples)


def stand_in(
    lacking: str,
    node: str,
    function: Callable[..., object],
    arguments: Callable[[], tuple[Any, ...]],
    *digesting: str,
    kernels: Mapping[str, Kernel] | None = None,
    key: str = "CPU",
) -> StandIn:
    """A row: ``digesting`` names operators whose kernels digest their arguments, ``kernels`` has special ones."""
    all_kernels = {name: digesting_kernel(name) for name in digesting} | dict(kernels or {})
    return StandIn(lacking, Extra(node, function, arguments), all_kernels, key)


def square() -> torch.Tensor:
    """Kernels that digest care for no shape, so all tensors may have one that fits every other."""
    return leaf(2, 2)


def ones() -> torch.Tensor:
    return torch.ones(2, dtype=torch.float64)


def losses(log_probabilities: torch.Tensor, *_: object) -> object:
    """A loss for each sample of a batch, and what a CTC loss keeps for its gradient."""
    return log_probabilities.sum((0, 2)), log_probabilities.exp()


def normalised(batch: torch.Tensor, *_: object) -> object:
    """A batch, mean and variance of its channels, and the reserve that cuDNN keeps."""
    return batch * 0.5, batch.sum(0), batch.sum(0) + 1, batch.new_zeros(3)


def normalised_without_reserve(batch: torch.Tensor, *_: object) -> object:
    return batch * 0.5, batch.sum(0), batch.sum(0) + 1


def normalised_rows(batch: torch.Tensor, *_: object) -> object:
    """A batch, and the scale of each of its rows."""
    return batch * 0.5, batch.sum(-1, keepdim=True)


def attention_gradients(*arguments: Any, **options: Any) -> object:
    """The gradients of query, key and value, and that of the bias if the bias requires one."""
    asked = 15
    kernel = digesting_kernel("_efficient_attention_backward")
    results: Any = kernel(*arguments[:asked], *arguments[asked + 1 :], **options)
    return *results[:3], results[3] if arguments[asked] else None


def gated_state(_: object, __: object, state: torch.Tensor, *___: object) -> object:
    """The new state of a gated recurrent cell, and its workspace of five values for each of the state's."""
    return state.clone(), torch.cat([state] * 5, 1)


def cell_states(gates: torch.Tensor, _: object, state: torch.Tensor, *__: object) -> object:
    """The new states of a recurrent cell with memory, and its workspace."""
    return state.clone(), state.clone(), gates.clone()


def convolved(image: torch.Tensor, weight: torch.Tensor, *_: object) -> torch.Tensor:
    """Something of the shape of a convolution with stride one and no padding."""
    sizes = [size - kernel + 1 for size, kernel in zip(image.shape[2:], weight.shape[2:], strict=True)]
    return image.new_ones(image.size(0), weight.size(0), *sizes) * image.sum() * weight.sum()


def spread(image: torch.Tensor, weight: torch.Tensor, *_: object) -> torch.Tensor:
    """Something of the shape of a transposed convolution with stride one and no padding."""
    sizes = [size + kernel - 1 for size, kernel in zip(image.shape[2:], weight.shape[2:], strict=True)]
    return image.new_ones(image.size(0), weight.size(1), *sizes) * image.sum() * weight.sum()


def copy_of(view: Callable[..., Any]) -> Kernel:
    """The kernel of ``select_copy``, given ``select``."""

    def kernel(*args: object) -> object:
        result = view(*args)
        return result.clone() if isinstance(result, torch.Tensor) else [one.clone() for one in result]

    return kernel


IMAGE = partial(leaf, 1, 2, 5, 5)
VOLUME = partial(leaf, 1, 2, 4, 4, 4)
TARGETS = torch.tensor([[1, 2], [3, 1]])
ONE, NONE = [1, 1], [0, 0]

CUDNN = [
    stand_in(
        "cuDNN",
        "CudnnAffineGridGeneratorBackward0",
        aten.cudnn_affine_grid_generator,
        lambda: (square(), 1, 1, 2, 2),
        "cudnn_affine_grid_generator",
        "cudnn_affine_grid_generator_backward",
    ),
    stand_in(
        "cuDNN",
        "CudnnAttentionBackward0",
        aten._cudnn_attention_forward,
        lambda: (square(), square(), square(), None, None, None, 2, 2, True, 0.0, False, False),
        "_cudnn_attention_forward",
        "_cudnn_attention_backward",
    ),
    stand_in(
        "cuDNN",
        "CudnnBatchNormBackward0",
        aten.cudnn_batch_norm,
        lambda: (square(), leaf(2), leaf(2), ones(), ones(), True, 0.1, 1e-5),
        "cudnn_batch_norm_backward",
        kernels={"cudnn_batch_norm": normalised},
    ),
    stand_in(
        "cuDNN",
        "CudnnBatchNormBackwardBackward0",
        aten.cudnn_batch_norm_backward,
        lambda: (square(), square(), leaf(2), ones(), ones(), ones(), ones(), 1e-5, ones()),
        "cudnn_batch_norm_backward",
    ),
    stand_in(
        "cuDNN",
        "CudnnConvolutionBackward0",
        aten.cudnn_convolution,
        lambda: (IMAGE(), leaf(3, 2, 3, 3), NONE, ONE, ONE, 1, False, False, False),
        kernels={"cudnn_convolution": convolved},
    ),
    stand_in(
        "cuDNN",
        "CudnnConvolutionTransposeBackward0",
        aten.cudnn_convolution_transpose,
        lambda: (IMAGE(), leaf(2, 3, 3, 3), NONE, NONE, ONE, ONE, 1, False, False, False),
        kernels={"cudnn_convolution_transpose": spread},
    ),
    stand_in(
        "cuDNN",
        "CudnnCtcLossBackward0",
        aten._cudnn_ctc_loss,
        lambda: (leaf(5, 2, 4), TARGETS, [5, 5], [2, 2], 0, False, False),
        kernels={"_cudnn_ctc_loss": losses},
    ),
    stand_in(
        "cuDNN",
        "CudnnCtcLossBackward1",
        aten._cudnn_ctc_loss.Tensor,
        lambda: (leaf(5, 2, 4), TARGETS, torch.tensor([5, 5]), torch.tensor([2, 2]), 0, False, False),
        kernels={"_cudnn_ctc_loss.Tensor": losses},
    ),
    stand_in(
        "cuDNN",
        "CudnnGridSamplerBackward0",
        aten.cudnn_grid_sampler,
        lambda: (square(), square()),
        "cudnn_grid_sampler",
        "cudnn_grid_sampler_backward",
    ),
    stand_in(
        "cuDNN",
        "CudnnGridSamplerBackwardBackward0",
        aten.cudnn_grid_sampler_backward,
        lambda: (IMAGE(), leaf(1, 5, 5, 2), IMAGE()),
        kernels={"cudnn_grid_sampler_backward": lambda image, grid, _: (image.clone(), grid.clone())},
    ),
    stand_in(
        "cuDNN",
        "CudnnRnnBackward0",
        aten._cudnn_rnn,
        lambda: (
            *(square(), [square(), square()], 2, None, square(), square()),
            *(2, 2, 0, 1, False, 0.0, True, False, [], None),
        ),
        "_cudnn_rnn",
        "_cudnn_rnn_backward",
    ),
    stand_in(
        "cuDNN",
        "CudnnRnnBackwardBackward0",
        aten._cudnn_rnn_backward,
        lambda: (
            *(
                square(),
                [square(), square()],
                2,
                ones(),
                square(),
                square(),
                square(),
                square(),
                square(),
                square(),
            ),
            *(2, 2, 0, 1, False, 0.0, True, False, [], None, ones(), [True] * 4),
        ),
        "_cudnn_rnn_backward",
    ),
]

MIOPEN = [
    stand_in(
        "MIOpen",
        "MiopenBatchNormBackward0",
        aten.miopen_batch_norm,
        lambda: (square(), leaf(2), leaf(2), ones(), ones(), True, 0.1, 1e-5),
        "miopen_batch_norm_backward",
        kernels={"miopen_batch_norm": normalised_without_reserve},
    ),
    stand_in(
        "MIOpen",
        "MiopenBatchNormBackwardBackward0",
        aten.miopen_batch_norm_backward,
        lambda: (square(), square(), leaf(2), ones(), ones(), ones(), ones(), 1e-5),
        "miopen_batch_norm_backward",
    ),
    stand_in(
        "MIOpen",
        "MiopenConvolutionBackward0",
        aten.miopen_convolution,
        lambda: (IMAGE(), leaf(3, 2, 3, 3), leaf(3), NONE, ONE, ONE, 1, False, False),
        kernels={"miopen_convolution": convolved},
    ),
    stand_in(
        "MIOpen",
        "MiopenConvolutionTransposeBackward0",
        aten.miopen_convolution_transpose,
        lambda: (IMAGE(), leaf(2, 3, 3, 3), leaf(3), NONE, NONE, ONE, ONE, 1, False, False),
        kernels={"miopen_convolution_transpose": spread},
    ),
    stand_in(
        "MIOpen",
        "MiopenDepthwiseConvolutionBackward0",
        aten.miopen_depthwise_convolution,
        lambda: (IMAGE(), leaf(2, 1, 3, 3), leaf(2), NONE, ONE, ONE, 2, False, False),
        kernels={"miopen_depthwise_convolution": convolved},
    ),
    stand_in(
        "MIOpen",
        "MiopenCtcLossBackward0",
        aten.miopen_ctc_loss,
        lambda: (leaf(5, 2, 4), TARGETS, [5, 5], [2, 2], 0, False, False),
        kernels={"miopen_ctc_loss": losses},
    ),
    stand_in(
        "MIOpen",
        "MiopenCtcLossBackward1",
        aten.miopen_ctc_loss.Tensor,
        lambda: (leaf(5, 2, 4), TARGETS, torch.tensor([5, 5]), torch.tensor([2, 2]), 0, False, False),
        kernels={"miopen_ctc_loss.Tensor": losses},
    ),
    stand_in(
        "MIOpen",
        "MiopenRnnBackward0",
        aten.miopen_rnn,
        lambda: (
            *(square(), [square(), square()], 2, square(), square()),
            *(2, 2, 1, False, 0.0, True, False, [], None),
        ),
        "miopen_rnn",
        "miopen_rnn_backward",
    ),
]

MPS = [
    stand_in(
        "MPS",
        "LstmMpsBackward0",
        aten._lstm_mps,
        lambda: (square(), [square(), square()], [square(), square()], True, 1, 0.0, True, False, False),
        "_lstm_mps",
        "lstm_mps_backward",
    ),
    stand_in(
        "MPS",
        "MaxPool2DBackward0",
        aten.max_pool2d,
        lambda: (square(), ONE),
        "max_pool2d",
        "max_pool2d_backward",
    ),
    stand_in(
        "MPS",
        "MaxPool2DBackwardBackward0",
        aten.max_pool2d_backward,
        lambda: (square(), square(), ONE),
        "max_pool2d_backward",
    ),
    stand_in(
        "MPS",
        "MpsConvolutionBackward0",
        aten._mps_convolution,
        lambda: (square(), square(), leaf(2), NONE, ONE, ONE, 1),
        "_mps_convolution",
        "mps_convolution_backward",
    ),
    stand_in(
        "MPS",
        "MpsConvolutionBackwardBackward0",
        aten.mps_convolution_backward,
        lambda: (IMAGE(), leaf(1, 3, 3, 3), leaf(3, 2, 3, 3), NONE, ONE, ONE, 1, [True] * 3),
        kernels={
            "mps_convolution_backward": lambda image, grad, weight, *_: (
                image.clone(),
                weight.clone(),
                grad.sum((0, 2, 3)),
            )
        },
    ),
    stand_in(
        "MPS",
        "MpsConvolutionTransposeBackward0",
        aten._mps_convolution_transpose,
        lambda: (square(), square(), NONE, NONE, ONE, ONE, 1),
        "_mps_convolution_transpose",
        "mps_convolution_transpose_backward",
    ),
]

CUDA = [
    stand_in(
        "CUDA",
        "ConvDepthwise2DBackward0",
        aten._conv_depthwise2d,
        lambda: (leaf(1, 1, 5, 5), leaf(2, 1, 3, 3), [3, 3], leaf(2), ONE, NONE, ONE),
        kernels={"_conv_depthwise2d": convolved},
    ),
    stand_in(
        "CUDA",
        "ConvDepthwise3DBackward0",
        aten.conv_depthwise3d,
        lambda: (
            leaf(1, 1, 4, 4, 4),
            leaf(2, 1, 2, 2, 2),
            [2, 2, 2],
            leaf(2),
            [1, 1, 1],
            [0, 0, 0],
            [1, 1, 1],
        ),
        kernels={"conv_depthwise3d": convolved},
    ),
    stand_in(
        "CUDA",
        "EfficientAttentionBackward0",
        aten._efficient_attention_forward,
        lambda: (square(), square(), square(), square(), None, None, 2, 2, 0.0, 0, True),
        "_efficient_attention_forward",
        kernels={"_efficient_attention_backward": attention_gradients},
    ),
    stand_in(
        "CUDA",
        "FlashAttentionBackward0",
        aten._flash_attention_forward,
        lambda: (square(), square(), square(), None, None, 2, 2, 0.0, False, False),
        "_flash_attention_forward",
        "_flash_attention_backward",
    ),
    stand_in(
        "CUDA",
        "FusedDropoutBackward0",
        aten._fused_dropout,
        lambda: (square(), 0.5),
        "_fused_dropout",
        "_masked_scale",
    ),
    stand_in(
        "CUDA",
        "FusedRmsNormBackward0",
        aten._fused_rms_norm,
        lambda: (square(), [2], leaf(2), 1e-5),
        "_fused_rms_norm_backward",
        kernels={"_fused_rms_norm": normalised_rows},
    ),
    stand_in("pinned memory", "PinMemoryBackward0", aten._pin_memory, lambda: (square(),), "_pin_memory"),
    stand_in(
        "CUDA",
        "ScaledDotProductCudnnAttentionBackward0",
        aten._scaled_dot_product_cudnn_attention,
        lambda: (square(), square(), square(), None, True),
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_cudnn_attention_backward",
    ),
    stand_in(
        "CUDA",
        "ScaledDotProductEfficientAttentionBackward0",
        aten._scaled_dot_product_efficient_attention,
        lambda: (square(), square(), square(), square(), True),
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_efficient_attention_backward",
    ),
    stand_in(
        "CUDA",
        "ScaledDotProductFlashAttentionBackward0",
        aten._scaled_dot_product_flash_attention,
        lambda: (square(), square(), square()),
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_backward",
    ),
    stand_in(
        "CUDA",
        "ThnnFusedGruCellBackward0",
        aten._thnn_fused_gru_cell,
        lambda: (leaf(2, 6), leaf(2, 6), square(), leaf(6), leaf(6)),
        kernels={"_thnn_fused_gru_cell": gated_state},
    ),
    stand_in(
        "CUDA",
        "ThnnFusedLstmCellBackward0",
        aten._thnn_fused_lstm_cell,
        lambda: (leaf(2, 8), leaf(2, 8), square(), leaf(8), leaf(8)),
        kernels={"_thnn_fused_lstm_cell": cell_states},
    ),
]

OTHER_BACKENDS = [
    stand_in(
        "a backend out of tree",
        "ConvolutionBackwardOverrideableBackward0",
        aten.convolution_backward_overrideable,
        lambda: (leaf(1, 3, 3, 3), IMAGE(), leaf(3, 2, 3, 3), ONE, NONE, ONE, False, NONE, 1, [True] * 3),
        kernels={
            "convolution_backward_overrideable": lambda grad, image, weight, *_: (
                image.clone(),
                weight.clone(),
                grad.sum((0, 2, 3)),
            )
        },
    ),
    stand_in(
        "a backend out of tree",
        "ConvolutionOverrideableBackward0",
        aten.convolution_overrideable,
        lambda: (square(), square(), leaf(2), ONE, NONE, ONE, False, NONE, 1),
        "convolution_overrideable",
        "convolution_backward_overrideable",
    ),
    stand_in(
        "a backend out of tree",
        "ScaledDotProductFusedAttentionOverrideableBackward0",
        aten._scaled_dot_product_fused_attention_overrideable,
        lambda: (square(), square(), square(), square()),
        "_scaled_dot_product_fused_attention_overrideable",
        "_scaled_dot_product_fused_attention_overrideable_backward",
    ),
]

NO_KERNEL = "a kernel: torch has none for these tensors"

NOWHERE = [
    stand_in(
        NO_KERNEL, "ChunkBackward0", aten.chunk, lambda: (square(), 2), kernels={"chunk": copy_of(aten.split)}
    ),
    stand_in(
        NO_KERNEL,
        "ConjBackward0_copy",
        aten._conj_copy,
        lambda: (square(),),
        kernels={"_conj_copy": copy_of(torch.Tensor.detach)},
    ),
    stand_in(
        NO_KERNEL,
        "NestedGetValuesBackward0_copy",
        aten._nested_get_values_copy,
        lambda: (square(),),
        "_nested_get_values_copy",
        "_nested_get_max_seqlen",
        "_nested_get_min_seqlen",
        "_nested_get_ragged_idx",
        "_nested_get_lengths",
        "_nested_get_jagged_dummy",
        "_nested_get_offsets",
        "_nested_view_from_jagged",
    ),
    stand_in(
        NO_KERNEL,
        "NestedViewFromJaggedBackward0_copy",
        aten._nested_view_from_jagged_copy,
        lambda: (square(), torch.tensor([0, 2]), torch.zeros(2).double()),
        "_nested_view_from_jagged_copy",
        "_nested_get_values",
        "values",
    ),
    stand_in(
        NO_KERNEL,
        "SelectBackwardAutogradNestedTensor0_copy",
        aten.select_copy.int,
        lambda: (nested((2, 3), (4, 3)), 0, 1),
        key="NestedTensorCPU",
        kernels={"select_copy.int": copy_of(aten.select.int)},
    ),
    stand_in(
        NO_KERNEL,
        "SplitWithSizesBackwardAutogradNestedTensor0_copy",
        aten.split_with_sizes_copy,
        lambda: (nested((2, 4), (3, 4)), [1, 3], -1),
        key="NestedTensorCPU",
        kernels={"split_with_sizes_copy": copy_of(aten.split_with_sizes)},
    ),
    stand_in(
        NO_KERNEL,
        "SqueezeBackwardAutogradNestedTensor0_copy",
        aten.squeeze_copy.dim,
        lambda: (nested((2, 1), (3, 1)), -1),
        key="NestedTensorCPU",
        kernels={"squeeze_copy.dim": copy_of(aten.squeeze.dim)},
    ),
    stand_in(
        NO_KERNEL,
        "SqueezeBackwardAutogradNestedTensor1_copy",
        aten.squeeze_copy.dims,
        lambda: (nested((2, 1), (3, 1)), [-1]),
        key="NestedTensorCPU",
        kernels={"squeeze_copy.dims": copy_of(aten.squeeze.dims)},
    ),
    stand_in(
        NO_KERNEL,
        "UnbindBackwardAutogradNestedTensor0_copy",
        aten.unbind_copy.int,
        lambda: (nested((2, 3), (4, 3)),),
        key="NestedTensorCPU",
        kernels={"unbind_copy.int": copy_of(aten.unbind.int)},
    ),
    stand_in(
        NO_KERNEL,
        "ValuesBackward0_copy",
        aten.values_copy,
        lambda: (torch.eye(3, dtype=torch.float64).to_sparse().requires_grad_(),),
        key="SparseCPU",
        kernels={"values_copy": copy_of(aten.values)},
    ),
    stand_in(
        NO_KERNEL,
        "ValuesBackwardAutogradNestedTensor0_copy",
        aten.values_copy,
        lambda: (nested((2, 3), (4, 3)),),
        key="NestedTensorCPU",
        kernels={"values_copy": copy_of(aten.values)},
    ),
    stand_in(
        NO_KERNEL,
        "ViewBackwardAutogradNestedTensor0_copy",
        aten.view_copy,
        lambda: (nested((2, 3), (4, 3)), [2, -1, 3]),
        key="NestedTensorCPU",
        kernels={"view_copy": copy_of(aten.view)},
    ),
]

STAND_INS = [*CUDNN, *MIOPEN, *MPS, *CUDA, *OTHER_BACKENDS, *NOWHERE]
