"""Every Python touch point with something that torch does not promise to keep."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

import torch


def stock_compiled_autograd_is_active() -> bool:
    """Whether torch's own compiled autograd holds the engine's entry. It is never imported for the sake of asking."""
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(module, "compiled_autograd_enabled", False))


class _SharedEntry:
    """The engine's one entry, between torch's compiled autograd and us. It takes the place of the function through
    which torch sets it.

    torch.compile and each transform of torch.func switch compiled autograd off and on again around their own work. To
    empty the entry and fill it anew each time would hurt backwards of other threads, which may not begin while it
    changes hands. So what goes from off to off leaves it as it is: ours.
    """

    def __init__(self, stock: Callable[..., Any], take: Callable[[], object]) -> None:
        self._stock = stock
        self._take = take
        self._is_ours = False
        # What torch would tell the next caller that was set before.
        self._dynamic = False
        functools.update_wrapper(self, stock)

    def take(self) -> None:
        """Fill the entry, while compiled autograd is off.

        Raises:
            RuntimeError: another thread is inside a backward, and torch lets nobody change the entry.
        """
        self._is_ours = False
        self._take()
        self._is_ours = True

    def __call__(self, compiler: object, dynamic: bool) -> tuple[object, bool]:
        """What torch calls with a compiler, or with None to switch compiled autograd off; gives what was set before."""
        before, self._dynamic = self._dynamic, dynamic
        if compiler is None and self._is_ours:
            return None, before
        try:
            previous, _ = self._stock(compiler, dynamic)
        except BaseException:
            self._dynamic = before
            raise
        self._is_ours = False
        if compiler is None:
            self._try_to_take()
        return previous, before

    def _try_to_take(self) -> None:
        # Whoever switches compiled autograd off does not ask for us. The next time is tried again.
        with contextlib.suppress(RuntimeError):
            self.take()


def take_engine_entry(take: Callable[[], object]) -> None:
    """Have ``take`` fill the engine's entry, now and whenever torch's compiled autograd was switched off.

    Raises:
        RuntimeError: as for ``take``.
    """
    space: Any = getattr(getattr(torch._C, "_dynamo", None), "compiled_autograd", None)
    stock: Any = getattr(space, "set_autograd_compiler", None)
    if stock is None:
        take()
        return
    if not isinstance(stock, _SharedEntry):
        stock = space.set_autograd_compiler = _SharedEntry(stock, take)
    stock.take()
