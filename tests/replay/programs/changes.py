"""What a program may do to a value between forward and backward, by name. To be read as a table."""

from __future__ import annotations

from collections.abc import Callable

import torch


def _write(value: torch.Tensor) -> None:
    with torch.no_grad():
        value.add_(1)


def _detach(value: torch.Tensor) -> None:
    value.detach_()


def _exchange_data(value: torch.Tensor) -> None:
    value.data = value.data * 2


def _set(value: torch.Tensor) -> None:
    with torch.no_grad():
        value.set_(value.detach() * 2)  # type: ignore[call-overload]


def _free_and_refill(value: torch.Tensor) -> None:
    """As those do who give up memory between forward and backward: no version counter sees it.

    Left freed, eager's own kernels would read memory that is not there.
    """
    kept = value.detach().clone()
    storage = value.untyped_storage()
    size = storage.nbytes()
    storage.resize_(0)
    storage.resize_(size)
    # What else lies in the memory must not be left to chance.
    torch.empty(0, dtype=value.dtype).set_(storage, 0, (size // value.element_size(),), (1,)).fill_(0.5)
    value.data.copy_(kept)


def _require_no_grad(value: torch.Tensor) -> None:
    value.requires_grad_(False)


CHANGES: dict[str, Callable[[torch.Tensor], None]] = {
    "write": _write,
    "detach in place": _detach,
    "other data": _exchange_data,
    "set to another tensor": _set,
    "free and refill": _free_and_refill,
    "require no grad": _require_no_grad,
}
