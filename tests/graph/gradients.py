"""What tests of this folder share: eager's gradients and how a traced graph's are compared with them."""

from __future__ import annotations

from collections.abc import Sequence

import backbind
import torch

from tests.oracle.compare import tensor_difference

Tensors = torch.Tensor | Sequence[torch.Tensor]


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A leaf of random values, always the same ones for one shape."""
    generator = torch.Generator().manual_seed(len(shape) * 31 + sum(shape))
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


def eager_gradients(outputs: Tensors, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    return torch.autograd.grad(outputs, inputs, retain_graph=True, allow_unused=True)


def same_bits(traced: torch.Tensor | None, eager: torch.Tensor | None) -> bool:
    """Equal in dtype, shape, layout, strides and every bit (all NaN are alike)."""
    return not tensor_difference(eager, traced)


def differences(
    traced: Sequence[torch.Tensor | None], eager: Sequence[torch.Tensor | None]
) -> dict[int, str]:
    """In which way gradients differ, by their position; nothing where they have the same bits, strides and dtype."""
    compared = [tensor_difference(one, other) for one, other in zip(eager, traced, strict=True)]
    return {position: found for position, found in enumerate(compared) if found}


def assert_traces(outputs: Tensors, inputs: Sequence[torch.Tensor]) -> None:
    """A traced graph gives what the engine gives."""
    graph = backbind.trace(outputs, inputs, allow_unused=True)
    assert differences(graph(), eager_gradients(outputs, inputs)) == {}
