"""Emits the machine-readable list of nodes: mode, reason, a hash of the formulas and where its code is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from .. import names
from ..model.node import NodeSpec
from .areas import area_of
from .rendering import Renderer
from .shards import SHARDS


def emit(renderer: Renderer) -> Mapping[str, str]:
    """``manifest.json``; each node stands on one line, so that a change shows as one line."""
    model, library = renderer.model, renderer.model.library
    nodes = {
        node.name: {
            "schema": node.schema,
            "mode": node.choice.mode.value,
            "reason": node.choice.reason,
            "formula_hash": formula_hash(node),
            "area": area_of(node.operator).name,
            "shard": names.shard(names.shard_index(node.name, SHARDS)),
        }
        for node in model.nodes
    }
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(node)}" for name, node in nodes.items())
    head = (
        f'  "{library.name}": {json.dumps(library.version)},\n  "yaml": {json.dumps(library.yaml_name)},\n'
        f'  "yaml_hash": {json.dumps(model.yaml_hash)},\n'
        f'  "line_directives": {json.dumps(renderer.line_directives)},'
    )
    return {"manifest.json": f'{{\n{head}\n  "nodes": {{\n{lines}\n  }}\n}}\n'}


def formula_hash(node: NodeSpec) -> str:
    """Changes when a formula, a saved value or the set of inputs changes."""
    text = json.dumps([node.schema, [(one.inputs, one.resolved) for one in node.formulas]])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
