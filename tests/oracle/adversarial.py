"""Values that formulas trip over: infinities, NaN, zeros of both signs, subnormals, the largest numbers, one.

They are put where a live node reads them: into the memory of the tensors that it saved, behind the back of their
version counters, and taken out again.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence

import torch

_REAL = (
    lambda kind: math.inf,
    lambda kind: 1.0,
    lambda kind: -0.0,
    lambda kind: math.nan,
    lambda kind: -math.inf,
    lambda kind: kind.smallest_normal / 4,
    lambda kind: 0.0,
    lambda kind: kind.max,
    lambda kind: 0.5,
    lambda kind: -kind.max,
    lambda kind: -1.0,
    lambda kind: -kind.tiny,
)
"""Each in terms of the limits of a dtype. Neighbours differ in kind, so that small tensors have some of each."""

_COMPLEX = (
    (0, 2),
    (1, 2),
    (1, 6),
    (3, 1),
    (0, 3),
    (2, 4),
    (6, 2),
    (8, 0),
    (7, 9),
    (5, 5),
    (10, 2),
    (6, 4),
    (3, 3),
    (4, 0),
)
"""Pairs of places in the list above, for the real and the imaginary part: complex one, parts with infinity and NaN."""

PATTERNS = 3
"""How many ways there are to place the values: each begins elsewhere."""


def adversarial(tensor: torch.Tensor, pattern: int) -> torch.Tensor:
    """A tensor like this one, with special values in it in turn, the place of the first one given by the pattern."""
    made = tensor.detach().clone()
    _fill(made, pattern)
    return made


@contextlib.contextmanager
def adversarial_memory(tensors: Sequence[torch.Tensor], pattern: int) -> Iterator[bool]:
    """While it lasts, the memory of these tensors has special values. Gives whether there was any to put them in."""
    before: list[tuple[torch.Tensor, torch.Tensor]] = []
    for number, tensor in enumerate(tensors):
        for flat in _memories(tensor):
            if all(
                flat.untyped_storage().data_ptr() != other.untyped_storage().data_ptr() for other, _ in before
            ):
                before.append((flat, flat.clone()))
                flat.copy_(special_values(flat.dtype, flat.numel(), pattern + number))
    try:
        yield bool(before)
    finally:
        for flat, values in before:
            flat.copy_(values)


def special_values(dtype: torch.dtype, count: int, pattern: int) -> torch.Tensor:
    """So many of the special values of a dtype, in turn."""
    real = torch.finfo(dtype)
    numbers: list[complex] | list[float] = [make(real) for make in _REAL]
    if dtype.is_complex:
        numbers = [complex(numbers[one].real, numbers[other].real) for one, other in _COMPLEX]
    start = pattern * (len(numbers) // PATTERNS)
    turned = [numbers[(start + place) % len(numbers)] for place in range(len(numbers))]
    one_turn = torch.tensor(turned, dtype=torch.complex128 if dtype.is_complex else torch.float64)
    return one_turn.to(dtype).repeat(count // len(numbers) + 1)[:count]


def is_changeable(tensor: torch.Tensor) -> bool:
    """Whether special values can be put into a tensor."""
    return bool(_memories(tensor))


def _fill(tensor: torch.Tensor, pattern: int) -> None:
    for flat in _memories(tensor):
        flat.copy_(special_values(flat.dtype, flat.numel(), pattern))


def _memories(tensor: torch.Tensor) -> list[torch.Tensor]:
    """All numbers of a tensor's memory in a row, with a version counter of their own; none where it has none."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.is_nested or tensor.is_quantized:
        return []
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.device.type != "cpu":
        return []
    if tensor.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        return _memories(tensor.detach().values())
    if tensor.layout == torch.sparse_coo:
        return _memories(tensor.detach()._values())
    if tensor.layout != torch.strided or tensor.dtype not in _KNOWN:
        return []
    storage = tensor.untyped_storage()
    count = storage.nbytes() // tensor.element_size()
    if count == 0:
        return []
    with torch.no_grad():
        return [torch.empty(0, dtype=tensor.dtype).set_(storage, 0, (count,), (1,))]


_KNOWN = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.complex128,
    torch.complex64,
)
