"""backbind makes the backward pass a thing people can hold.

Every node of derivatives.yaml is a typed, documented operator of its own::

    import torch, backbind

    x = torch.randn(3, requires_grad=True)
    y = x.tanh()
    operator = backbind.ops.for_node(y.grad_fn)          # backbind.ops.TanhBackward0
    operator([torch.ones(3)], *backbind.pack(y.grad_fn)) # what the autograd engine would compute

``with backbind.capture(): loss.backward()`` runs backwards by plans, faster than the engine does.

``backbind.trace(loss)`` decomposes a whole backward into a graph of such operators.
"""

from __future__ import annotations

import torch  # noqa: F401  (its libraries must be loaded before the compiled part)

from backbind._load import load_compiled_part

load_compiled_part()

from backbind import ops  # noqa: E402
from backbind._capture import Session, Stats, capture, disable, enable, is_enabled, reset, stats  # noqa: E402
from backbind._namespace import pack  # noqa: E402
from backbind.graph.backends import backends  # noqa: E402
from backbind.graph.file_errors import GraphFileError  # noqa: E402
from backbind.graph.saving import load, save  # noqa: E402
from backbind.trace import leaves, trace  # noqa: E402

__all__ = [
    "GraphFileError",
    "Session",
    "Stats",
    "backends",
    "capture",
    "disable",
    "enable",
    "is_enabled",
    "leaves",
    "load",
    "ops",
    "pack",
    "reset",
    "save",
    "stats",
    "trace",
]
__version__ = "0.1.0"
