"""Emits the type stubs of ``backbind.ops``: a typed signature and the documentation of every operator, by area."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .. import names
from ..model.node import NodeSpec
from .areas import modules_by_node, split_into_areas
from .rendering import Renderer


@dataclass(frozen=True)
class StubView:
    """One operator in the stubs."""

    name: str
    parameters: tuple[str, ...]
    doc: tuple[str, ...]
    """Lines of the docstring."""


def emit(renderer: Renderer) -> Mapping[str, str]:
    """``python/ops/_areas/<area>.pyi`` and, with the names of all operators, ``python/ops/__init__.pyi``."""
    texts = {}
    for area, nodes in split_into_areas(renderer.model.nodes):
        path = names.area_file(area.name, ".pyi")
        views = [_view(node, renderer.docstrings[node.name]) for node in nodes]
        texts[path] = renderer.render("python/area.pyi.j2", path, title=area.title, operators=views)
    areas = modules_by_node(renderer.model.nodes)
    modules = sorted({module for _, module in areas})
    path = "python/ops/__init__.pyi"
    texts[path] = renderer.render("python/namespace.pyi.j2", path, modules=modules, areas=areas)
    return texts


def _view(node: NodeSpec, docstring: str) -> StubView:
    doc = docstring.replace("\\", "\\\\").replace('"""', r"\"\"\"")
    return StubView(
        node.name,
        tuple(f"{one.name}: {one.component.annotation}" for one in node.arguments),
        tuple(doc.split("\n")),
    )
