"""Runs backwards on a device that is none, as eager and captured, and prints what became of each, as JSON.

Arguments: the library of the device, and whether it is an accelerator, with streams, or another device.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from typing import Any

import backbind
import torch
from torch.utils.backend_registration import rename_privateuse1_backend

library, kind = sys.argv[1:]
torch.ops.load_library(library)
cpp: Any = torch.ops.backbind_fake_device
if kind == "accelerator":
    rename_privateuse1_backend("fake")
cpp.add_device(kind == "accelerator")


def cpu(x: torch.Tensor) -> None:
    (x * 2).sum().backward()


def inside(x: torch.Tensor) -> None:
    (cpp.back(cpp.there(x * 2)) * x).sum().backward()


def root(x: torch.Tensor) -> None:
    cpp.there(x * 2).backward(cpp.there(torch.ones(3)))


def one_of_two_roots(x: torch.Tensor) -> None:
    torch.autograd.backward([(x * 2).sum(), cpp.there(x)], [torch.ones(()), cpp.there(torch.ones(3))])


def returned(x: torch.Tensor) -> None:
    (x.grad,) = torch.autograd.grad((cpp.back(cpp.there(x * 2)) * x).sum(), x)


def unwanted(x: torch.Tensor) -> None:
    y = torch.ones(3, requires_grad=True)
    (x.grad,) = torch.autograd.grad((cpp.back(cpp.there(y)) * x).sum(), x)


def outcome(run: Callable[[torch.Tensor], None], *, captured: bool) -> dict[str, object]:
    x = torch.arange(3.0, requires_grad=True)
    error = None
    backbind.reset()
    with backbind.capture() if captured else contextlib.nullcontext():
        try:
            run(x)
        except RuntimeError as raised:  # the engine knows no device with queues but the accelerator
            error = str(raised)
    stats = backbind.stats()
    return {
        "result": [None if x.grad is None else x.grad.tolist(), error],
        "captures": stats.captures,
        "plans": stats.plans,
        "looked up": stats.look_up_seconds > 0,
        "fallbacks": dict(stats.fallback_reasons),
    }


accelerator = torch.accelerator.current_accelerator()
runs = (cpu, inside, root, one_of_two_roots, returned, unwanted)
print(
    json.dumps(
        {
            "accelerator": None if accelerator is None else accelerator.type,
            "eager": {run.__name__: outcome(run, captured=False)["result"] for run in runs},
            "captured": {run.__name__: outcome(run, captured=True) for run in runs},
        }
    )
)
