"""Emits the list of all shards, from which the C++ registry is made."""

from __future__ import annotations

from collections.abc import Mapping

from .. import names
from .rendering import Renderer
from .shards import SHARDS


def emit(renderer: Renderer) -> Mapping[str, str]:
    """``cpp/generated_bindings.h`` and ``cpp/generated_bindings.cpp``."""
    shards = [names.shard(index) for index in range(SHARDS)]
    return {
        path: renderer.render(f"{path}.j2", path, shards=shards)
        for path in ("cpp/generated_bindings.h", "cpp/generated_bindings.cpp")
    }
