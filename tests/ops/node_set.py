"""A representative set of nodes, each made by a real forward.

`NODE_SET` covers every row of the type table, both modes, nodes of lists, copies of views, several outputs, and lists
of tensors as inputs; test_node_set.py holds it to that. Tests of every folder are parametrised over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import backbind
import torch
from backbind._operator import FunctionalOperator
from torch import Tensor
from torch.nn import functional

Outputs = Tensor | Sequence[Tensor]


@dataclass(frozen=True)
class NodeCase:
    """One node and a forward that makes it."""

    node: str
    """Name of the node: ``MulBackward0``."""
    forward: Callable[..., Outputs]
    """Called with the inputs; the node is the ``grad_fn`` of its first output that has one."""
    shapes: Callable[[int], Sequence[tuple[int, ...]]]
    """Shapes of the inputs for a size that may vary."""
    dtype: torch.dtype = torch.float64
    prepare: Callable[[Tensor], Tensor] = field(default=lambda tensor: tensor)
    """Brings random numbers into the domain of the forward."""
    smooth: bool = True
    """Whether finite differences see what the formula says: false where the forward draws random numbers or is made
    for single precision."""
    twice: bool = True
    """Whether the backward can itself be differentiated."""

    def __str__(self) -> str:
        return self.node

    def make(self, size: int = 3, seed: int = 0) -> Made:
        """Run the forward on new random inputs."""
        generator = torch.Generator().manual_seed(seed)
        inputs = []
        for shape in self.shapes(size):
            values = torch.randn(shape, dtype=self.dtype, generator=generator)
            inputs.append(self.prepare(values).requires_grad_())
        torch.manual_seed(seed)
        outputs = as_list(self.forward(*inputs))
        differentiable = [one for one in outputs if one.grad_fn is not None]
        grads = [torch.randn(one.shape, dtype=one.dtype, generator=generator) for one in differentiable]
        return Made(self, tuple(inputs), tuple(differentiable), tuple(grads))


@dataclass(frozen=True)
class Made:
    """What a forward made: a live node, and gradients for it."""

    case: NodeCase
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    """The differentiable ones."""
    output_grads: tuple[Tensor, ...]

    @property
    def node(self) -> torch.autograd.graph.Node:
        node = self.outputs[0].grad_fn
        assert node is not None
        return node

    @property
    def operator(self) -> FunctionalOperator:
        return backbind.ops.for_node(self.node)

    @property
    def grads(self) -> list[Tensor | None]:
        """The gradients by the node's own numbering of its outputs."""
        count = len(self.node._input_metadata)
        grads: list[Tensor | None] = [None] * count
        for output, grad in zip(self.outputs, self.output_grads, strict=True):
            grads[output.output_nr] = grad
        return grads

    @property
    def packed(self) -> tuple[Any, ...]:
        return backbind.pack(self.node)

    def call(self) -> list[Tensor | None]:
        """The functional operator on this node's values."""
        return self.operator(self.grads, *self.packed)

    def expected(self) -> list[Tensor | None]:
        """What the live node computes."""
        return run_node(self.node, self.grads)

    def reached_inputs(self) -> list[int | None]:
        """For each gradient of the node, the position of the input that it belongs to."""
        by_identity = {id(one): position for position, one in enumerate(self.inputs)}
        return [
            by_identity.get(id(node.variable)) if node is not None and hasattr(node, "variable") else None
            for node, _ in self.node.next_functions
        ]


def run_node(node: Any, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
    """What a live node computes, called from Python."""
    result = node(*grads)
    return list(result) if isinstance(result, tuple) else [result]


def as_list(outputs: Outputs) -> list[Tensor]:
    return [outputs] if isinstance(outputs, Tensor) else list(outputs)


def tensors_of(value: object) -> Iterator[Tensor]:
    """Every tensor inside lists and tuples."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from tensors_of(one)


def same_bits(left: Tensor | None, right: Tensor | None) -> bool:
    """Whether two results are the same to the last bit, NaN payloads included."""
    if left is None or right is None:
        return left is right
    if left.dtype != right.dtype or left.shape != right.shape or left.layout != right.layout:
        return False
    left, right = left.detach(), right.detach()
    if left.layout != torch.strided:
        left, right = left.to_dense(), right.to_dense()
    return torch.equal(_bytes(left), _bytes(right))


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


def all_same_bits(left: Sequence[Tensor | None], right: Sequence[Tensor | None]) -> bool:
    return len(left) == len(right) and all(same_bits(a, b) for a, b in zip(left, right, strict=True))


def _square(count: int) -> Callable[[int], Sequence[tuple[int, ...]]]:
    return lambda n: [(n, 4)] * count


def _index(high: int, *shape: int) -> Tensor:
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(1))


def _positive(tensor: Tensor) -> Tensor:
    return tensor.abs() + 0.5


def _fraction(tensor: Tensor) -> Tensor:
    return tensor.sigmoid() * 0.8 + 0.1


def _batch_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Outputs:
    return torch.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5)


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Outputs:
    outputs: Sequence[Tensor] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
    return outputs


def _split_copy(x: Tensor) -> Outputs:
    pieces: Sequence[Tensor] = torch.ops.aten.split_copy.Tensor(x, 2, 1)
    return pieces


_ONE = _square(1)
_TWO = _square(2)
_THREE = _square(3)

_ELEMENTWISE = (
    NodeCase("MulBackward0", torch.mul, _TWO),
    NodeCase("AddBackward0", lambda a, b: torch.add(a, b, alpha=2), _TWO),
    NodeCase("DivBackward2", lambda a, b: torch.div(a, b, rounding_mode=None), _TWO, prepare=_positive),
    NodeCase("TanhBackward0", torch.tanh, _ONE),
    NodeCase("ExpBackward0", torch.exp, _ONE),
    NodeCase("PowBackward0", lambda a: a**3, _ONE, prepare=_positive),
    NodeCase("PowBackward1", torch.pow, _TWO, prepare=_positive),
    NodeCase("ClampBackward1", lambda a: a.clamp(-0.7, 0.9), _ONE),
    NodeCase("LogitBackward0", lambda a: torch.logit(a, eps=1e-6), _ONE, prepare=_fraction),
    NodeCase("GeluBackward0", lambda a: functional.gelu(a, approximate="tanh"), _ONE),
    NodeCase("HardtanhBackward0", functional.hardtanh, _ONE),
    NodeCase("LeakyReluBackward0", lambda a: functional.leaky_relu(a, 0.2), _ONE),
    NodeCase("AddcmulBackward0", lambda a, b, c: torch.addcmul(a, b, c, value=0.5), _THREE),
    NodeCase("LerpBackward0", lambda a, b: torch.lerp(a, b, 0.3), _TWO),
    NodeCase("WhereBackward0", lambda a, b: torch.where(a > b, a, b), _TWO),
    NodeCase("MaskedFillBackward0", lambda a: a.masked_fill(a.detach() > 0, 2.0), _ONE),
    NodeCase("NativeDropoutBackward0", lambda a: torch.native_dropout(a, 0.4, True), _ONE, smooth=False),
    NodeCase("AbsBackward0", torch.abs, lambda n: [(n, 2)], dtype=torch.complex128),
)

_REDUCTIONS = (
    NodeCase("SumBackward1", lambda a: a.sum(1), _ONE),
    NodeCase("MeanBackward1", lambda a: a.mean(0, keepdim=True), _ONE),
    NodeCase("ProdBackward0", torch.prod, lambda n: [(n,)], prepare=_positive),
    NodeCase("VarBackward0", lambda a: torch.var(a, 1, correction=1), _ONE),
    NodeCase("StdMeanBackward0", lambda a: torch.std_mean(a, 1), _ONE),
    NodeCase("AminmaxBackward0", lambda a: torch.aminmax(a, dim=1), _ONE),
    NodeCase("LinalgVectorNormBackward0", lambda a: torch.linalg.vector_norm(a, 3, dim=1), _ONE),
    NodeCase("LogsumexpBackward0", lambda a: torch.logsumexp(a, 1), _ONE),
    NodeCase("SortBackward0", lambda a: torch.sort(a, 1), _ONE),
    NodeCase("TopkBackward0", lambda a: torch.topk(a, 2, 1), _ONE),
    NodeCase("CumsumBackward0", lambda a: a.cumsum(1), _ONE),
    NodeCase("LogSoftmaxBackward0", lambda a: a.log_softmax(1), _ONE),
    NodeCase("CdistBackward0", lambda a, b: torch.cdist(a, b, p=3.0), _TWO, twice=False),
)

_SHAPES = (
    NodeCase("ViewBackward0", lambda a: a.view(-1), _ONE),
    NodeCase("ExpandBackward0", lambda a: a.expand(2, *a.shape), _ONE),
    NodeCase("PermuteBackward0", lambda a: a.permute(1, 0), _ONE),
    NodeCase("SliceBackward0", lambda a: a[:, 1:3], _ONE),
    NodeCase("SelectBackward0", lambda a: a[1], _ONE),
    NodeCase("UnbindBackward0", lambda a: a.unbind(1), _ONE),
    NodeCase("SplitBackward0", lambda a: a.split(2, 1), _ONE),
    NodeCase("SplitWithSizesBackward0", lambda a: a.split([1, 3], 1), _ONE),
    NodeCase("AsStridedBackward0", lambda a: a.as_strided((2, 2), (4, 1), 1), _ONE),
    NodeCase("RepeatBackward0", lambda a: a.repeat(2, 1), _ONE),
    NodeCase("DiagonalScatterBackward0", torch.diagonal_scatter, lambda n: [(n, n), (n,)]),
    NodeCase("CatBackward0", lambda a, b, c: torch.cat([a, b, c], 1), lambda n: [(n, 2), (n, 1), (n, 4)]),
    NodeCase("StackBackward0", lambda a, b: torch.stack([a, b]), _TWO),
    NodeCase("BlockDiagBackward0", torch.block_diag, lambda n: [(n, 2), (1, 3)]),
    NodeCase("ViewBackward0_copy", lambda a: torch.view_copy(a, (-1,)), _ONE),
    NodeCase("SplitBackward0_copy", _split_copy, _ONE),
    NodeCase("SliceBackward0_copy", lambda a: torch.slice_copy(a, 1, 1, 3), _ONE),
)

_INDEXING = (
    NodeCase("IndexBackward0", lambda a: a[:, _index(4, 3)], _ONE),
    NodeCase("GatherBackward0", lambda a: a.gather(1, _index(4, a.shape[0], 2)), _ONE),
    NodeCase(
        "ScatterReduceBackward0", lambda a, b: a.scatter_reduce(1, _index(4, *b.shape), b, "mean"), _TWO
    ),
    NodeCase("EmbeddingBackward0", lambda a: functional.embedding(_index(3, 5), a), _ONE),
)

_LINEAR_ALGEBRA = (
    NodeCase("MmBackward0", torch.mm, lambda n: [(n, 4), (4, 2)]),
    NodeCase(
        "AddmmBackward0", lambda a, b, c: torch.addmm(a, b, c, beta=0.5), lambda n: [(n, 2), (n, 4), (4, 2)]
    ),
    NodeCase("BmmBackward0", torch.bmm, lambda n: [(n, 2, 3), (n, 3, 2)]),
    NodeCase("LinalgQrBackward0", torch.linalg.qr, lambda n: [(n + 2, n)]),
    NodeCase("LinalgInvExBackward0", lambda a: torch.linalg.inv_ex(a), lambda n: [(n, n)]),
)

_NETWORKS = (
    NodeCase(
        "ConvolutionBackward0",
        lambda x, w, b: functional.conv2d(x, w, b, padding=1),
        lambda n: [(n, 2, 5, 5), (3, 2, 3, 3), (3,)],
        smooth=False,  # too many elements for finite differences
    ),
    NodeCase(
        "NativeLayerNormBackward0",
        lambda x, w, b: functional.layer_norm(x, (4,), w, b),
        lambda n: [(n, 4), (4,), (4,)],
    ),
    NodeCase("NativeBatchNormBackward0", _batch_norm, lambda n: [(n, 3), (3,), (3,)]),
    NodeCase("AvgPool2DBackward0", lambda x: functional.avg_pool2d(x, 2), lambda n: [(n, 1, 4, 4)]),
    NodeCase(
        "MaxPool2DWithIndicesBackward0",
        lambda x: functional.max_pool2d(x, 2, return_indices=True),
        lambda n: [(n, 1, 4, 4)],
    ),
    NodeCase(
        "UpsampleBilinear2DBackward0",
        lambda x: torch.ops.aten.upsample_bilinear2d(x, (4, 4), False),
        lambda n: [(n, 1, 2, 2)],
    ),
    NodeCase(
        "BinaryCrossEntropyWithLogitsBackward0",
        lambda x, y: functional.binary_cross_entropy_with_logits(x, y),
        _TWO,
        prepare=_fraction,
    ),
    NodeCase("NllLossBackward0", lambda x: functional.nll_loss(x, _index(4, x.shape[0])), _ONE),
    NodeCase(
        "ScaledDotProductFlashAttentionForCpuBackward0",
        _attention,
        lambda n: [(n, 2, 4, 8)] * 3,
        dtype=torch.float32,
        smooth=False,
        twice=False,
    ),
)

_LISTS = (
    NodeCase("ForeachTanhBackward0", lambda a, b: torch._foreach_tanh([a, b]), _TWO),
    NodeCase("ForeachNegBackward0", lambda a, b: torch._foreach_neg([a, b]), _TWO),
    NodeCase("ForeachMulBackward0List", lambda a, b, c, d: torch._foreach_mul([a, b], [c, d]), _square(4)),
    NodeCase("ForeachMulBackward1ScalarList", lambda a, b: torch._foreach_mul([a, b], [2.0, -3.0]), _TWO),
    NodeCase(
        "ForeachAddcmulBackward0ScalarList",
        lambda a, b, c: torch._foreach_addcmul([a], [b], [c], [0.5]),
        _THREE,
    ),
    NodeCase("ForeachLerpBackward0ScalarList", lambda a, b: torch._foreach_lerp([a], [b], [0.25]), _TWO),
    NodeCase("ForeachNormBackward0", lambda a, b: torch._foreach_norm([a, b], 2), _TWO),
)

NODE_SET: tuple[NodeCase, ...] = (
    *_ELEMENTWISE,
    *_REDUCTIONS,
    *_SHAPES,
    *_INDEXING,
    *_LINEAR_ALGEBRA,
    *_NETWORKS,
    *_LISTS,
)
