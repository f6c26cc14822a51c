"""Emits what Python knows about each node: plain records by area, each imported when the first of it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .. import names
from ..model.node import NodeSpec
from .areas import modules_by_node, split_into_areas
from .documentation import describe_argument
from .rendering import Renderer


@dataclass(frozen=True)
class RecordRow:
    """One node as Python literals."""

    name: str
    fields: tuple[tuple[str, str], ...]
    """Field and value, written as Python."""
    formulas: tuple[str, ...]
    arguments: tuple[str, ...]


def emit(renderer: Renderer) -> Mapping[str, str]:
    """``python/ops/_areas/<area>.py`` and, with the area of each node, ``python/ops/_areas/__init__.py``."""
    model = renderer.model
    texts = {}
    for area, nodes in split_into_areas(model.nodes):
        path = names.area_file(area.name, ".py")
        rows = [_row(node, model.library.yaml_name, renderer.docstrings[node.name]) for node in nodes]
        texts[path] = renderer.render("python/area.py.j2", path, title=area.title, rows=rows)
    path = "python/ops/_areas/__init__.py"
    texts[path] = renderer.render("python/areas.py.j2", path, areas=modules_by_node(model.nodes))
    return texts


def _row(node: NodeSpec, yaml_name: str, docstring: str) -> RecordRow:
    fields = {
        "operator": node.operator,
        "forward_schema": node.forward_schema,
        "dispatch_key": node.dispatch_key,
        "origin": node.origin,
        "inputs": tuple(one.name for one in node.inputs),
        "outputs": tuple(one.name for one in node.outputs),
        "mode": node.choice.mode.value,
        "reason": node.choice.reason,
        "yaml": yaml_name,
        "line": node.line,
        "doc": docstring,
    }
    return RecordRow(
        node.name,
        tuple((name, repr(value)) for name, value in fields.items()),
        tuple(
            f"FormulaRecord({one.inputs!r}, {' '.join(one.written.split())!r}, {one.line})"
            for one in node.formulas
        ),
        tuple(
            f"ArgumentRecord({argument.name!r}, {argument.component.schema!r}, {argument.component.annotation!r}, "
            f"{saved.name!r}, {describe_argument(saved, argument)!r})"
            for saved in node.saved
            for argument in saved.arguments
        ),
    )
