"""Nodes of the copying forms of views: ``expand_copy`` has the derivatives of ``expand``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from .. import names
from ..parse.schema import Schema
from .records import ResolvedNode


def copies_of_views(nodes: tuple[ResolvedNode, ...], schemas: Mapping[str, Schema]) -> Iterator[ResolvedNode]:
    """A node for the copying form of each view among the operators of ``nodes``.

    ``schemas`` are the operators that may get one, by name with overload.
    """
    for node in nodes:
        if node.schema.is_view:
            base, dot, overload = node.schema.full_name.partition(".")
            copy = schemas.get(f"{base}_copy{dot}{overload}")
            if copy is not None:
                yield replace(node, name=names.view_copy_node(node.name), schema=copy, origin="view_copy")
