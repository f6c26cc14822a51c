"""Emits what Python knows about each node: plain records, imported when the first one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..model.node import NodeSpec
from .documentation import describe_argument
from .rendering import Renderer


@dataclass(frozen=True)
class CatalogRow:
    """One node as Python literals."""

    name: str
    fields: tuple[tuple[str, str], ...]
    """Field and value, written as Python."""
    formulas: tuple[str, ...]
    arguments: tuple[str, ...]


def emit(renderer: Renderer) -> Mapping[str, str]:
    """``python/ops/_catalog.py``."""
    path = "python/ops/_catalog.py"
    rows = [
        _row(node, renderer.model.yaml_name, renderer.docstrings[node.name]) for node in renderer.model.nodes
    ]
    return {path: renderer.render("python/catalog.py.j2", path, rows=rows)}


def _row(node: NodeSpec, yaml_name: str, docstring: str) -> CatalogRow:
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
    return CatalogRow(
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
