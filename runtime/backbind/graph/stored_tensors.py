"""Constants of a graph as pieces of memory and descriptions of how tensors lie on them.

A safetensors file holds tensors that lie in memory without gaps and share none of it. Kernels choose by strides how
they compute, and so how they round: so what is stored is the memory behind the tensors, once where several lie on it,
and beside it sizes, strides and flags of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from backbind import _C
from backbind.graph.fields import Fields, shown
from backbind.graph.file_errors import GraphFileError
from backbind.graph.stored_values import DTYPES, LAYOUTS, device, dtype

NATIVE = frozenset(
    (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
        *(torch.int64, torch.int32, torch.int16, torch.int8),
        *(torch.uint64, torch.uint32, torch.uint16, torch.uint8),
        *(torch.bool, torch.complex64),
        *(torch.float8_e4m3fn, torch.float8_e5m2),
    )
)
"""The dtypes that pieces have by themselves; those of all others are bytes."""

_COMPRESSED = {
    torch.sparse_csr: (torch.Tensor.crow_indices, torch.Tensor.col_indices),
    torch.sparse_bsr: (torch.Tensor.crow_indices, torch.Tensor.col_indices),
    torch.sparse_csc: (torch.Tensor.ccol_indices, torch.Tensor.row_indices),
    torch.sparse_bsc: (torch.Tensor.ccol_indices, torch.Tensor.row_indices),
}
_STRIDED_KEYS = ("layout", "dtype", "device", "sizes", "strides", "offset", "piece")
_FLAGS = ("number", "conj", "neg")
_LARGEST = 2**62
"""More elements than any tensor has."""


# ------------------------------------------------------------------------------------------------------------- storing


@dataclass(slots=True)
class _Piece:
    """Elements ``begin`` to ``end`` of a storage, and the tensors that lie on them."""

    begin: int
    end: int
    views: list[_View] = field(default_factory=list)


@dataclass(slots=True)
class _View:
    """A dense tensor without flags, and its description, which is completed when its piece is known."""

    name: str
    tensor: torch.Tensor
    description: dict[str, Any]

    @property
    def begin(self) -> int:
        return int(self.tensor.storage_offset())

    @property
    def end(self) -> int:
        return self.begin + _extent(self.tensor.shape, self.tensor.stride())


def describe(constants: Mapping[str, torch.Tensor]) -> tuple[list[dict[str, Any]], dict[str, torch.Tensor]]:
    """The descriptions of tensors, in their order, and the pieces of memory that they lie on, by name.

    Raises:
        TypeError: a tensor is of a kind that cannot be stored.
    """
    refused = [f"  {name}: {kind}" for name, one in constants.items() if (kind := _refused_kind(one))]
    if refused:
        raise TypeError("\n".join(["this graph has buffers of kinds that cannot be stored:", *refused]))
    views: list[_View] = []
    described = [{"name": name, "tensor": _describe(name, one, views)} for name, one in constants.items()]
    pieces: dict[str, torch.Tensor] = {}
    for piece in _pieces(views):
        name = piece.views[0].name
        pieces[name] = _content(piece)
        for view in piece.views:
            view.description |= {"piece": name, "offset": view.begin - piece.begin}
    return described, pieces


def _describe(name: str, tensor: torch.Tensor, views: list[_View]) -> dict[str, Any]:
    described: dict[str, Any] = {"layout": _short(tensor.layout), "sizes": list(tensor.shape)}
    if tensor.layout is torch.strided:
        _describe_strided(name, tensor, views, described)
        return described
    if tensor.layout is torch.sparse_coo:
        parts = {"indices": tensor._indices(), "values": tensor._values()}
        described["coalesced"] = tensor.is_coalesced()
    else:
        compressed, plain = _COMPRESSED[tensor.layout]
        parts = {"compressed": compressed(tensor), "plain": plain(tensor), "values": tensor.values()}
    return described | {part: _describe(f"{name}.{part}", one, views) for part, one in parts.items()}


def _refused_kind(tensor: torch.Tensor) -> str | None:
    """What a tensor is that cannot be stored."""
    if type(tensor) is not torch.Tensor:
        return type(tensor).__name__
    if tensor.is_quantized:
        return "a quantized tensor"
    if tensor.is_nested:
        return "a nested tensor"
    if tensor._is_zerotensor():
        return "zeros without memory"
    if tensor.layout not in (torch.strided, torch.sparse_coo, *_COMPRESSED):
        return f"a tensor of the layout {tensor.layout}"
    return None


def _describe_strided(name: str, tensor: torch.Tensor, views: list[_View], described: dict[str, Any]) -> None:
    flags = {
        "number": _C.is_wrapped_number(tensor),
        "conj": tensor.is_conj(),
        "neg": tensor.is_neg(),
    }
    # A view without flags lies on the same memory.
    plain = tensor.detach()
    plain = plain.conj() if tensor.is_conj() else plain
    plain = plain._neg_view() if tensor.is_neg() else plain
    described |= {
        "dtype": _short(tensor.dtype),
        "device": str(tensor.device),
        "strides": list(tensor.stride()),
        "offset": 0,
        "piece": None,
        **{flag: True for flag, is_set in flags.items() if is_set},
    }
    if tensor.numel() > 0 and tensor.device.type != "meta":
        views.append(_View(name, plain, described))


def _pieces(views: Iterable[_View]) -> list[_Piece]:
    """The memory behind the views, a piece for all that overlap. What lies on a storage apart from them is left out:
    a view may be a small part of a large tensor, which is nobody's business.
    """
    storages: dict[tuple[int, torch.dtype], list[_View]] = {}
    for view in views:
        key = (view.tensor.untyped_storage()._cdata, view.tensor.dtype)
        storages.setdefault(key, []).append(view)
    found: list[_Piece] = []
    for on_storage in storages.values():
        pieces: list[_Piece] = []
        for view in sorted(on_storage, key=lambda one: one.begin):
            if not pieces or view.begin >= pieces[-1].end:
                pieces.append(_Piece(view.begin, view.end))
            pieces[-1].end = max(pieces[-1].end, view.end)
            pieces[-1].views.append(view)
        found += pieces
    order = {id(view): position for position, view in enumerate(views)}
    for piece in found:
        piece.views.sort(key=lambda one: order[id(one)])
    return found


def _content(piece: _Piece) -> torch.Tensor:
    """The elements of a piece; zeros where no tensor has an element. Bytes, where safetensors lacks the dtype."""
    first = piece.views[0].tensor
    size = piece.end - piece.begin
    elements = first.as_strided((size,), (1,), piece.begin).cpu().clone()
    content = elements.view(torch.uint8).view(size, elements.element_size())
    if not any(view.tensor.numel() == size and _is_dense(view.tensor) for view in piece.views):
        used = torch.zeros(size, dtype=torch.bool)
        for view in piece.views:
            used.as_strided(view.tensor.shape, view.tensor.stride(), view.begin - piece.begin).fill_(True)
        content[~used] = 0
    if first.dtype not in NATIVE:
        return content.flatten()
    # Who reads the file with other tools should find the tensor that they expect.
    is_whole = first.numel() == size and first.is_contiguous()
    return elements.view(first.shape) if is_whole else elements


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether elements neither overlap nor have gaps between them, given that there are as many as memory has."""
    steps = sorted(
        (stride, size) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1
    )
    expected = 1
    for stride, size in steps:
        if stride != expected:
            return False
        expected *= size
    return True


def _extent(sizes: Iterable[int], strides: Iterable[int]) -> int:
    """How many elements of memory a tensor reaches over that has at least one element."""
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def _short(value: object) -> str:
    return str(value).removeprefix("torch.")


# ------------------------------------------------------------------------------------------------------------- loading


class Pieces:
    """The pieces of a file, each as the elements that tensors of one dtype lie on."""

    def __init__(self, pieces: Mapping[str, torch.Tensor]) -> None:
        self._pieces = pieces
        self._elements: dict[str, torch.Tensor] = {}

    def elements(self, name: str, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Raises GraphFileError where there is no piece of that name and dtype, or no such device here."""
        if name not in self._pieces:
            raise GraphFileError(f"there is no piece {shown(name)}")
        if name not in self._elements:
            self._elements[name] = self._on_device(name, dtype, device)
        found = self._elements[name]
        if (found.dtype, found.device) != (dtype, device):
            raise GraphFileError(f"the piece {shown(name)} is used by tensors of several dtypes or devices")
        return found

    def check_all_used(self) -> None:
        for name in self._pieces:
            if name not in self._elements:
                raise GraphFileError(f"the piece {shown(name)} belongs to no tensor")

    def _on_device(self, name: str, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        piece = self._pieces[name].flatten()
        if piece.dtype is not (dtype if dtype in NATIVE else torch.uint8):
            raise GraphFileError(
                f"the piece {shown(name)} holds {piece.dtype}, which is not what {dtype} is stored as"
            )
        if dtype is torch.bool and bool((piece.view(torch.uint8) > 1).any()):
            raise GraphFileError(f"the piece {shown(name)} holds what is neither true nor false")
        try:
            # A copy: memory of a file is not aligned, and goes when the file does.
            return piece.clone().view(dtype).to(device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).partition("\n")[0]
            raise GraphFileError(f"the piece {shown(name)} cannot be put on {device}: {reason}") from None


def restore(description: object, what: str, pieces: Pieces) -> torch.Tensor:
    """The tensor that was described. Raises GraphFileError where that does not describe one."""
    if not isinstance(description, dict) or "layout" not in description:
        raise GraphFileError(f"{what} has no layout")
    layout = LAYOUTS.get(str(description["layout"]))
    if layout is torch.strided:
        return _restore_strided(Fields(description, what, ("sizes", *_STRIDED_KEYS), _FLAGS), what, pieces)
    if layout is torch.sparse_coo:
        keys = ("layout", "sizes", "coalesced", "indices", "values")
    elif layout in _COMPRESSED:
        keys = ("layout", "sizes", "compressed", "plain", "values")
    else:
        raise GraphFileError(f"{what} has the layout {shown(description['layout'])}, in which none is stored")
    fields = Fields(description, what, keys)
    sizes = _sizes(fields, what)
    parts = [restore(fields.any(key), f"'{key}' of {what}", pieces) for key in keys[2:] if key != "coalesced"]
    if any(one.layout is not torch.strided or one.is_conj() or one.is_neg() for one in parts[:-1]):
        raise GraphFileError(f"indices of {what} are no plain tensors")
    if any(one.is_meta for one in parts) or parts[-1].layout is not torch.strided:
        raise GraphFileError(f"{what} has parts that are no ordinary tensors")
    make: Any = torch.sparse_coo_tensor if layout is torch.sparse_coo else torch.sparse_compressed_tensor
    facts: dict[str, Any] = {"layout": layout}
    if layout is torch.sparse_coo:
        # What is not marked as coalesced stays as it is; what is marked must be.
        facts = {"is_coalesced": fields.get("coalesced", bool) or None}
    try:
        tensor: torch.Tensor = make(*parts, sizes, check_invariants=True, **facts)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise GraphFileError(f"{what} is no {layout} tensor: {reason}") from None
    return tensor


def _sizes(fields: Fields, what: str) -> list[int]:
    sizes = fields.integers("sizes")
    if len(sizes) > 64 or math.prod(max(size, 1) for size in sizes) > _LARGEST:
        raise GraphFileError(f"{what} has more elements or dimensions than any tensor")
    return sizes


def _restore_strided(fields: Fields, what: str, pieces: Pieces) -> torch.Tensor:
    sizes, strides = _sizes(fields, what), fields.integers("strides")
    kind, place = dtype(fields), device(fields.any("device"))
    offset = fields.get("offset", int)
    is_empty = 0 in sizes or place.type == "meta"
    if len(strides) != len(sizes):
        raise GraphFileError(f"{what} has {len(sizes)} sizes and {len(strides)} strides")
    extent = _extent((max(size, 1) for size in sizes), strides)
    if not 0 <= offset <= _LARGEST or extent > _LARGEST:
        raise GraphFileError(f"{what} reaches further than any tensor")
    flags = {flag for flag in _FLAGS if fields.optional(flag, bool)}
    if "conj" in flags and not kind.is_complex:
        raise GraphFileError(f"{what} is conjugated, but {kind}")
    if "neg" in flags and not (kind.is_complex or kind.is_floating_point):
        raise GraphFileError(f"{what} is negated, but {kind}")
    if "number" in flags and (sizes or place.type != "cpu" or len(flags) > 1):
        raise GraphFileError(f"{what} stands for a number, but is none")
    if is_empty != (fields.any("piece") is None) or (is_empty and offset):
        raise GraphFileError(f"{what} must have a piece if it has elements, and none otherwise")
    if kind not in DTYPES.values() or kind in _QUANTIZED:
        raise GraphFileError(f"{what} is {kind}, of which none are stored")
    try:
        if is_empty:
            tensor = torch.empty_strided(sizes, strides, dtype=kind, device=place)
        else:
            elements = pieces.elements(fields.get("piece", str), kind, place)
            if offset + extent > elements.numel():
                raise GraphFileError(f"{what} reaches over the end of its piece")
            tensor = elements.as_strided(sizes, strides, offset)
        if "number" in flags:
            _C.mark_wrapped_number(tensor)
        tensor = tensor._neg_view() if "neg" in flags else tensor
        return tensor.conj() if "conj" in flags else tensor
    except (RuntimeError, TypeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise GraphFileError(f"{what} cannot be made here: {reason}") from None


_QUANTIZED = (torch.quint8, torch.qint8, torch.qint32, torch.quint4x2, torch.quint2x4)
