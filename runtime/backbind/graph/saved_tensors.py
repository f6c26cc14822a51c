"""Saved tensors in the hands of a graph: noticing that one was changed in place, and copying them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from backbind import _C


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A buffer that lies on the storage of a tensor that the forward saved, as it was when the graph was made."""

    buffer: str
    """Name of the buffer."""
    tensor: torch.Tensor
    version: int
    node: str
    """Name of the (first) node that saved it."""

    @staticmethod
    def watch(buffer: str, tensor: torch.Tensor, node: str) -> SavedTensor | None:
        """The record of a buffer; None for a tensor whose changes nobody counts."""
        if tensor.is_inference():
            return None
        return SavedTensor(buffer, tensor, tensor._version, node)

    def has_changed(self) -> bool:
        return self.tensor._version != self.version

    def error(self) -> RuntimeError:
        """Eager's error, in terms of the graph."""
        shape = list(self.tensor.shape)
        return RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{self.tensor.type()} {shape}], which {self.node} saved (buffer '{self.buffer}' of this graph), is at "
            f"version {self.tensor._version}; expected version {self.version} instead. Call the graph before the "
            "tensor is changed, trace the next forward anew, or use backbind.trace(..., copy_saved=True), which "
            "keeps a copy of what was saved."
        )


class SavedCopies:
    """Copies saved tensors. Several that are one tensor get one copy."""

    def __init__(self) -> None:
        self._copies: dict[tuple[object, ...], torch.Tensor] = {}

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor of the same values, strides and flags on a storage of its own."""
        if _C.is_wrapped_number(tensor):
            number = tensor.clone()
            _C.mark_wrapped_number(number)
            return number
        if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided or tensor.is_quantized:
            return tensor.clone()
        key = (
            tensor.untyped_storage()._cdata,
            tensor.storage_offset(),
            tensor.shape,
            tensor.stride(),
            tensor.dtype,
            tensor.is_conj(),
            tensor.is_neg(),
        )
        if key not in self._copies:
            self._copies[key] = _copy_strided(tensor)
        return self._copies[key]


def _copy_strided(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, even where elements overlap or have gaps between them: kernels choose by strides
    how they compute, and so how they round.
    """
    # Values are copied without the flags, which torch would apply to them on the way.
    if tensor.is_conj():
        return _copy_strided(tensor.conj()).conj()
    if tensor.is_neg():
        return _copy_strided(tensor._neg_view())._neg_view()
    if tensor.numel() == 0:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    extent = 1 + sum((size - 1) * stride for size, stride in steps)
    values = tensor.as_strided((extent,), (1,)).clone()
    return values.as_strided(tensor.shape, tensor.stride(), 0)
