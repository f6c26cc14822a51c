"""Emits the C++ of all nodes: functional backward, packers and binding, one block a node, in a few large shards."""

from __future__ import annotations

from collections.abc import Mapping

from .. import names
from ..model.node import Mode, NodeSpec
from .rendering import Renderer

SHARDS = 4
"""Enough that one changed formula recompiles quickly, few enough that the headers' cost does not dominate."""


def emit(renderer: Renderer) -> Mapping[str, str]:
    """``cpp/nodes_<k>.cpp`` and, with the YAML lines of its formulas, ``cpp/nodes_<k>.lines.h``."""
    texts = {}
    for index, nodes in enumerate(split_into_shards(renderer.model.nodes)):
        shard = names.shard(index)
        path = f"cpp/{shard}.cpp"
        views = [renderer.views[node.name] for node in nodes]
        texts[path] = renderer.render(
            "cpp/nodes.cpp.j2",
            path,
            shard=shard,
            nodes=views,
            line_directives=renderer.line_directives,
        )
        lines_path = f"cpp/{shard}.lines.h"
        texts[lines_path] = renderer.render("cpp/lines.h.j2", lines_path, lines=_formula_lines(nodes))
    return texts


def split_into_shards(nodes: tuple[NodeSpec, ...]) -> list[list[NodeSpec]]:
    """Nodes by shard, each in order of names."""
    shards: list[list[NodeSpec]] = [[] for _ in range(SHARDS)]
    for node in nodes:
        shards[names.shard_index(node.name, SHARDS)].append(node)
    return shards


def _formula_lines(nodes: list[NodeSpec]) -> list[tuple[str, int]]:
    return [
        (names.line_macro(node.name, formula.inputs), formula.line)
        for node in nodes
        if node.choice.mode is Mode.INLINE
        for formula in node.formulas
    ]
