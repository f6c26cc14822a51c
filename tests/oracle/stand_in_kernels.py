"""Stand-ins for kernels that only other hardware has.

A node is made above the kernels, so a node of cuDNN can be made on any machine, if something computes. A stand-in
computes nothing of use, but depends on every bit of its arguments: an operator that hands one wrong argument to the
kernel, or two in the wrong order, gets other gradients than the live node.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_leaves

Kernel: TypeAlias = Callable[..., object]


@contextmanager
def stand_ins(kernels: Mapping[str, Kernel], key: str) -> Iterator[None]:
    """Give operators kernels for the dispatch key ``key``."""
    with torch.library._scoped_library("aten", "IMPL") as library:
        for name, kernel in kernels.items():
            with warnings.catch_warnings():
                # Torch warns where an operator that is made of others gets a kernel of its own.
                warnings.simplefilter("ignore")
                library.impl(name, kernel, key)
        yield


def digesting_kernel(name: str) -> Kernel:
    """A kernel whose results have the shape of its first tensor, and numbers that depend on all its arguments."""
    packet, _, overload = name.partition(".")
    schema = getattr(getattr(torch.ops.aten, packet), overload or "default")._schema

    def kernel(*args: Any, **kwargs: Any) -> object:
        results = [
            _made(str(one.type), f"{name} {at}", (args, kwargs)) for at, one in enumerate(schema.returns)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    return kernel


def _made(kind: str, name: str, arguments: object) -> object:
    if kind == "List[Tensor]":
        return [_made("Tensor", f"{name} {at}", arguments) for at in range(2)]
    if kind != "Tensor":
        return 1
    like = next(
        leaf for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
    )
    first = _fraction(name, arguments)
    values = torch.arange(like.numel(), dtype=like.dtype).reshape(like.shape)
    return values * 0.125 + first


def _fraction(name: str, arguments: object) -> float:
    """A number from -1 to 1 that depends on everything."""
    digest = hashlib.blake2b(name.encode(), digest_size=8)
    for leaf in tree_leaves(arguments):
        if isinstance(leaf, torch.Tensor):
            digest.update(repr((leaf.dtype, tuple(leaf.shape))).encode())
            digest.update(leaf.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        else:
            digest.update(repr(leaf).encode())
    return int.from_bytes(digest.digest(), "little") / 2**63 - 1
