"""Meters of memory: how much was held at most since a meter was started, and in how many pieces it was taken."""

import ctypes
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tools.benchmarks._compiled import BUILD, HERE, load


@dataclass(frozen=True)
class Taken:
    """What a piece of work took.

    Attributes:
        peak: bytes that it held at most beyond those held when it began.
        count: how often it took memory.
    """

    peak: int
    count: int


class TensorMeter:
    """Counts the bytes of tensors in CPU memory, exactly, as asked of torch's allocator; one at a time."""

    def __init__(self, build_folder: Path | None = None) -> None:
        load("allocations", build_folder)
        classes: Any = torch.classes
        self._meter = classes.backbind_allocations.TensorMeter()

    def start(self) -> None:
        self._meter.start()

    def stop(self) -> None:
        """Give torch's allocator its place back."""
        self._meter.stop()

    def read(self) -> Taken:
        return Taken(self._meter.peak(), self._meter.count())

    def held(self) -> int:
        """Bytes that are held now beyond those held at the start; fewer may be, too."""
        held: int = self._meter.held()
        return held


class MallocMeter:
    """Counts all that malloc gives, tensors, nodes and Python's arenas alike; needs `preloaded`."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        for name in ("peak", "count"):
            getattr(self._library, f"backbind_malloc_{name}").restype = ctypes.c_int64

    def start(self) -> None:
        self._library.backbind_malloc_start()

    def read(self) -> Taken:
        # The count first: reading it takes memory.
        count = self._library.backbind_malloc_count()
        return Taken(self._library.backbind_malloc_peak(), count)


def preloaded() -> bool:
    """Whether this process was started in the environment of `preloading`."""
    return hasattr(ctypes.CDLL(None), "backbind_malloc_start")


def preloading() -> dict[str, str]:
    """The environment of a process whose malloc is counted; compiles what is needed for that."""
    source = HERE / "allocations" / "malloc_meter.cc"
    library = BUILD / "malloc_meter" / "malloc_meter.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        compiler = shlex.split(os.environ.get("CXX", "g++"))
        flags = ["-O2", "-std=c++20", "-shared", "-fPIC", "-fno-builtin"]
        subprocess.run([*compiler, *flags, str(source), "-o", str(library)], check=True)
    others = [os.environ["LD_PRELOAD"]] if os.environ.get("LD_PRELOAD") else []
    return {**os.environ, "LD_PRELOAD": ":".join([*others, str(library)])}
