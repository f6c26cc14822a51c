"""Emits the Python module ``backbind.ops``: one line for each node."""

from __future__ import annotations

from collections.abc import Mapping

from .rendering import Renderer


def emit(renderer: Renderer) -> Mapping[str, str]:
    """``python/ops/__init__.py``."""
    path = "python/ops/__init__.py"
    nodes = [node.name for node in renderer.model.nodes]
    return {path: renderer.render("python/namespace.py.j2", path, nodes=nodes)}
