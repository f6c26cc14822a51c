"""Emits the C++ declarations of the functional backwards, for C++ that calls them with typed arguments."""

from __future__ import annotations

from collections.abc import Mapping

from .rendering import Renderer


def emit(renderer: Renderer) -> Mapping[str, str]:
    """``cpp/generated_functional.h``."""
    path = "cpp/generated_functional.h"
    return {path: renderer.render(f"{path}.j2", path, nodes=list(renderer.views.values()))}
