"""Emits the reference pages: one page for each area, one entry for each operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..model.node import NodeSpec
from .areas import area_of, areas
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
    by_area: dict[str, list[NodeSpec]] = {}
    for node in model.nodes:
        by_area.setdefault(area_of(node.operator), []).append(node)
    texts = {}
    pages = []
    for page, title in areas():
        nodes = by_area.get(page, [])
        if not nodes:
            continue
        path = f"reference/{page}.md"
        pages.append((f"{page}.md", title, len(nodes)))
        entries = [_view(node, renderer.docstrings[node.name]) for node in nodes]
        texts[path] = renderer.render("reference/page.md.j2", path, title=title, entries=entries)
    path = "reference/README.md"
    texts[path] = renderer.render(
        "reference/index.md.j2", path, pages=pages, count=len(model.nodes), torch_version=model.torch_version
    )
    return texts


def _view(node: NodeSpec, doc: str) -> EntryView:
    return EntryView(node.name, node.schema, node.choice.mode.value, node.choice.reason, doc)
