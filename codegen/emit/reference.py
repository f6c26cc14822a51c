"""Emits the reference pages: one page for each area, one entry for each operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..model.node import NodeSpec
from .areas import split_into_areas
from .rendering import Renderer


@dataclass(frozen=True)
class EntryView:
    """One operator on a page."""

    name: str
    schema: str
    mode: str
    reason: str
    doc: str


def emit(renderer: Renderer) -> Mapping[str, str]:
    """``reference/<area>.md`` and ``reference/README.md``."""
    model = renderer.model
    texts = {}
    pages = []
    for area, nodes in split_into_areas(model.nodes):
        path = f"reference/{area.name}.md"
        pages.append((f"{area.name}.md", area.title, len(nodes)))
        entries = [_view(node, renderer.docstrings[node.name]) for node in nodes]
        texts[path] = renderer.render("reference/page.md.j2", path, title=area.title, entries=entries)
    path = "reference/README.md"
    texts[path] = renderer.render("reference/index.md.j2", path, pages=pages, count=len(model.nodes))
    return texts


def _view(node: NodeSpec, doc: str) -> EntryView:
    return EntryView(node.name, node.schema, node.choice.mode.value, node.choice.reason, doc)
