"""Whether tensors are the same to the last bit."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def equal_bits(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    """Equal types, sizes and bits: 0 and -0 differ, and a nan equals itself. Both may be missing."""
    if one is None or other is None:
        return one is other
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    bytes_of = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other)]
    return torch.equal(*bytes_of)


def all_equal_bits(pairs: Iterable[tuple[torch.Tensor | None, torch.Tensor | None]]) -> bool:
    """The same for many pairs."""
    return all(equal_bits(one, other) for one, other in pairs)
