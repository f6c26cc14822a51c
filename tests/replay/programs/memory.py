"""How much memory the process holds."""

from __future__ import annotations

import ctypes
import gc
from dataclasses import dataclass
from pathlib import Path

import torch


class _MallocInfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


@dataclass(frozen=True)
class Memory:
    """Numbers that stay the same where nothing is leaked."""

    tensors: int
    """Live tensors that Python knows."""
    objects: int
    """Live Python objects of all kinds that the collector knows."""
    allocated: int
    """Bytes that malloc gave and did not get back: tensors, nodes, plans, everything."""
    resident: int
    """Bytes that the system gave the process."""


def memory() -> Memory:
    """What is held now, with cycles collected."""
    gc.collect()
    objects = gc.get_objects()
    tensors = sum(issubclass(type(one), torch.Tensor) for one in objects)
    return Memory(tensors, len(objects), _allocated(), _resident())


def _allocated() -> int:
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _MallocInfo
    info = mallinfo()
    return int(info.uordblks + info.hblkhd)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
