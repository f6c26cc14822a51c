"""Says in which way two outcomes differ, down to the bits. There is no tolerance anywhere.

Equal means: the same exception type and text; or as many gradients, None in the same places, and for each the same
dtype, shape, layout, device, strides, lazy conjugation and negation, and the same bits, in which zeros of unlike sign
differ and all NaNs are one.
"""

from __future__ import annotations

from typing import Any

import torch

from tests.oracle.outcome import Outcome

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""An integer type for each size of element: floats are compared through their bits."""

MKLDNN: torch.layout = vars(torch)["_mkldnn"]
"""The layout of MKLDNN tensors, which torch's types leave out."""

_COMPRESSED_ROWS = (torch.sparse_csr, torch.sparse_bsr)


def difference(expected: Outcome, actual: Outcome, *, history: bool = False) -> str:
    """In which way ``actual`` differs, or an empty text.

    With ``history`` the graphs behind the gradients must begin with the same kind of node, too.
    """
    if expected.error is not None or actual.error is not None:
        if expected.error == actual.error:
            return ""
        return f"expected {_described_error(expected)}, got {_described_error(actual)}"
    if len(expected.gradients) != len(actual.gradients):
        return f"expected {len(expected.gradients)} gradients, got {len(actual.gradients)}"
    for position, (left, right) in enumerate(zip(expected.gradients, actual.gradients, strict=True)):
        found = tensor_difference(left, right)
        if not found and history:
            found = _history_difference(left, right)
        if found:
            return f"gradient {position}: {found}"
    return ""


def is_dense(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_nested


def plain_copy(tensor: torch.Tensor) -> torch.Tensor:
    """The numbers of a dense tensor, as those of every other of its shape lie in memory.

    ``contiguous()`` leaves any stride where a size is one.
    """
    plain = tensor.detach().resolve_conj().resolve_neg()
    return plain.clone(memory_format=torch.contiguous_format)


def _described_error(outcome: Outcome) -> str:
    if outcome.error is None:
        return "gradients"
    kind, text = outcome.error
    return f"{kind.__name__}({text!r})"


def _history_difference(left: torch.Tensor | None, right: torch.Tensor | None) -> str:
    def described(tensor: torch.Tensor | None) -> str:
        if tensor is None or not tensor.requires_grad:
            return "no graph"
        return "a leaf" if tensor.grad_fn is None else f"a graph that ends in {tensor.grad_fn.name()}"

    return (
        "" if described(left) == described(right) else f"expected {described(left)}, got {described(right)}"
    )


def tensor_difference(left: torch.Tensor | None, right: torch.Tensor | None) -> str:
    """In which way ``right`` differs from ``left``, or an empty text."""
    if left is None or right is None:
        if left is right:
            return ""
        return f"expected {'None' if left is None else 'a tensor'}, got {'None' if right is None else 'a tensor'}"
    for fact in ("dtype", "layout", "device", "is_nested"):
        if getattr(left, fact) != getattr(right, fact):
            return f"expected {fact} {getattr(left, fact)}, got {getattr(right, fact)}"
    if left.is_nested:
        return _parts_difference(_nested_parts(left), _nested_parts(right))
    if left.shape != right.shape:
        return f"expected shape {tuple(left.shape)}, got {tuple(right.shape)}"
    if left.layout != torch.strided:
        if left.layout == torch.sparse_coo and left.is_coalesced() != right.is_coalesced():
            return f"expected is_coalesced() to be {left.is_coalesced()}"
        return _parts_difference(_parts(left), _parts(right))
    if left.stride() != right.stride():
        return f"expected strides {left.stride()}, got {right.stride()}"
    if (left.is_conj(), left.is_neg()) != (right.is_conj(), right.is_neg()):
        return "expected the same lazy conjugation and negation"
    return _bits_difference(left.detach(), right.detach())


def _parts_difference(left: list[torch.Tensor], right: list[torch.Tensor]) -> str:
    if len(left) != len(right):
        return f"expected {len(left)} parts, got {len(right)}"
    for number, (one, other) in enumerate(zip(left, right, strict=True)):
        found = tensor_difference(one, other)
        if found:
            return f"part {number}: {found}"
    return ""


def _nested_parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    if tensor.layout != torch.jagged:
        return list(tensor.detach().unbind())
    jagged: Any = tensor.detach()  # a class of its own, which torch's types leave out
    return [jagged.offsets(), jagged.values()]


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    tensor = tensor.detach()
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout == MKLDNN:
        return [tensor.to_dense()]
    if tensor.layout in _COMPRESSED_ROWS:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]


def _bits_difference(left: torch.Tensor, right: torch.Tensor) -> str:
    if left.is_conj() or left.is_neg():
        left, right = left.resolve_conj().resolve_neg(), right.resolve_conj().resolve_neg()
    if left.is_quantized:
        left, right = left.int_repr(), right.int_repr()
    if left.is_complex():
        left, right = torch.view_as_real(left), torch.view_as_real(right)
    if not left.is_floating_point():
        return "" if torch.equal(left, right) else _described(left, right, left != right)
    # Elements that share memory (an expanded gradient) cannot be reinterpreted in place.
    bits = _BITS[left.element_size()]
    left_bits, right_bits = left.contiguous().view(bits), right.contiguous().view(bits)
    if torch.equal(left_bits, right_bits):
        return ""
    unequal = (left_bits != right_bits) & ~(left.isnan() & right.isnan())
    return _described(left, right, unequal) if unequal.any() else ""


def _described(left: torch.Tensor, right: torch.Tensor, unequal: torch.Tensor) -> str:
    first = tuple(unequal.nonzero()[0].tolist())
    return (
        f"{int(unequal.sum())} of {left.numel()} elements differ, first at {first}: "
        f"expected {left[first].item()!r}, got {right[first].item()!r}"
    )
