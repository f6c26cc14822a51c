"""Emits the table of all nodes: how each is compiled and why, and the entries that make no node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from .areas import area_of
from .rendering import Renderer


def emit(renderer: Renderer) -> Mapping[str, str]:
    """``reference/coverage.md``."""
    path = "reference/coverage.md"
    model = renderer.model
    counts = Counter(node.choice.mode.value for node in model.nodes)
    rows = [
        (node.name, node.operator, area_of(node.operator).name, node.choice.mode.value, node.choice.reason)
        for node in model.nodes
    ]
    skipped = [(entry.schema, entry.reason) for entry in model.skipped]
    return {
        path: renderer.render(
            "reference/coverage.md.j2", path, counts=sorted(counts.items()), rows=rows, skipped=skipped
        )
    }
