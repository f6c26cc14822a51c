"""Passes over captured graphs."""

from __future__ import annotations

import operator

import torch
from torch import fx


def is_pure(node: fx.Node) -> bool:
    """Whether a call has no effect but its result: operators are pure, code of a user and leaves are not."""
    return node.op == "call_function" and (
        node.target is operator.getitem
        or (isinstance(node.target, torch._ops.OpOverload) and node.target.namespace == "backbind")
    )


def eliminate_dead_code(graph: fx.Graph) -> None:
    """Drops calls whose result nobody takes and that have no effect."""
    for node in reversed(graph.nodes):
        if not node.users and is_pure(node):
            graph.erase_node(node)
