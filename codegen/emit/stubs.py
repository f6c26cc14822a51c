"""Emits the type stubs of ``backbind.ops``: a typed signature and the documentation of every operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .. import names
from ..model.node import NodeSpec
from .rendering import Renderer


@dataclass(frozen=True)
class StubView:
    """One operator in the stubs."""

    name: str
    call_class: str
    parameters: tuple[str, ...]
    doc: tuple[str, ...]
    """Lines of the docstring."""


def emit(renderer: Renderer) -> Mapping[str, str]:
    """``python/ops/__init__.pyi``."""
    path = "python/ops/__init__.pyi"
    views = [_view(node, renderer.docstrings[node.name]) for node in renderer.model.nodes]
    return {path: renderer.render("python/namespace.pyi.j2", path, operators=views)}


def _view(node: NodeSpec, docstring: str) -> StubView:
    doc = docstring.replace("\\", "\\\\").replace('"""', r"\"\"\"")
    return StubView(
        node.name,
        names.call_class(node.name),
        tuple(f"{one.name}: {one.component.annotation}" for one in node.arguments),
        tuple(doc.split("\n")),
    )
