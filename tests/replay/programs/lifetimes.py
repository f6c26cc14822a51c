"""Tells a log when objects die, so that when a backward frees what it held is compared with when eager does."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import torch

from tests.replay.programs.observations import Log


@dataclass
class Lifetimes:
    """The objects of one run that are watched."""

    log: Log
    _watched: dict[str, weakref.ref[object]] = field(default_factory=dict)
    _count: int = 0

    def watch(self, value: object, name: str) -> None:
        """Log that ``value`` dies when it does. A tensor lives as long as anything in C++ holds it, too."""
        if value is None:
            return
        self._count += 1
        name = f"{name} (object {self._count})"
        self.log.births.add(name)
        self._watched[name] = weakref.ref(value, lambda _: self._died(name))

    def stop(self) -> None:
        """What dies from now on is not told."""
        self._watched.clear()

    def _died(self, name: str) -> None:
        self.log.add_death(name)
        self._watched.pop(name, None)


class Packed:
    """What a pack hook makes of a tensor: an object whose life shows how long it is kept."""

    def __init__(self, kept: object, dtype: torch.dtype) -> None:
        self.kept = kept
        self.dtype = dtype
