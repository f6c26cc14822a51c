"""Walks live autograd graphs, from the results of a program to their leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import torch
from torch.autograd.graph import Node
from torch.utils._pytree import tree_leaves

Edge: TypeAlias = tuple[Node | None, int]
"""A node and the position of the gradient that arrives there."""


def tensors_with_history(results: object) -> list[torch.Tensor]:
    """The tensors of any nest of results that have a graph behind them."""
    return [
        leaf for leaf in tree_leaves(results) if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None
    ]


def reachable_nodes(starts: Iterable[Node]) -> Iterator[Node]:
    """Every node that a backward from ``starts`` could run, each once, nearest first."""
    waiting = list(dict.fromkeys(starts))
    met = set(waiting)
    for node in waiting:
        yield node
        for function, _ in node.next_functions:
            if function is not None and function not in met:
                met.add(function)
                waiting.append(function)


def reaches(start: Node, targets: set[Node]) -> bool:
    """Whether a backward that begins at ``start`` can arrive at one of ``targets``."""
    return any(node in targets for node in reachable_nodes([start]))
