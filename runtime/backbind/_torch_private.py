"""Every Python touch point with something that torch does not promise to keep."""

from __future__ import annotations

import sys


def stock_compiled_autograd_is_active() -> bool:
    """Whether torch's own compiled autograd holds the engine's entry. It is never imported for the sake of asking."""
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(module, "compiled_autograd_enabled", False))
