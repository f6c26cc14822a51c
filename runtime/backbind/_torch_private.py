"""Every Python touch point with something that torch does not promise to keep."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch


def stock_compiled_autograd_is_active() -> bool:
    """Whether torch's own compiled autograd holds the engine's entry. It is never imported for the sake of asking."""
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(module, "compiled_autograd_enabled", False))


def call_when_stock_lets_go(take: Callable[[], object]) -> None:
    """Have ``take`` called whenever torch empties the engine's entry.

    torch.compile and torch.func switch compiled autograd off and on again around their own work, and each time the
    entry is left empty, whoever held it before. The function through which they do so is therefore wrapped, once.
    """
    space: Any = getattr(getattr(torch._C, "_dynamo", None), "compiled_autograd", None)
    stock: Any = getattr(space, "set_autograd_compiler", None)
    if stock is None or hasattr(stock, "backbind_take"):
        return

    @functools.wraps(stock)
    def set_autograd_compiler(compiler: object, *arguments: object) -> object:
        before = stock(compiler, *arguments)
        if compiler is None:
            take()
        return before

    set_autograd_compiler.backbind_take = take  # type: ignore[attr-defined]
    space.set_autograd_compiler = set_autograd_compiler
