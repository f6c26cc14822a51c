"""A fact on its way: found in the cache, or being read by another process while this one goes on."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from .background import Background
from .cache import Cache

_Fact = TypeVar("_Fact")


class KeptRun(Generic[_Fact]):
    """Reads one fact; leaving the ``with`` block ends the reading, finished or not."""

    def __init__(
        self,
        cache: Cache,
        name: str,
        key: str,
        *,
        start: Callable[[], Background],
        from_plain: Callable[[Any], _Fact],
    ) -> None:
        """Look up ``name`` under ``key``, or call ``start``; ``from_plain`` makes the fact of the process's answer."""
        self._cache = cache
        self._name = name
        self._key = key
        self._from_plain = from_plain
        self._found: _Fact | None = cache.find(name, key)
        self._process = None if self._found is not None else start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.__exit__(kind, error, trace)

    def result(self) -> _Fact:
        """The fact, kept for later runs.

        Raises:
            BackgroundError: the process raised an exception or ended early.
        """
        if self._found is None:
            assert self._process is not None, "a run that found nothing has a process"
            self._found = self._from_plain(self._process.result())
            self._cache.keep(self._name, self._key, self._found)
        return self._found
