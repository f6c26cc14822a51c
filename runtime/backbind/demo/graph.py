"""Single backwards taken out of the engine: as operators, and as one graph."""

from __future__ import annotations

import pickle
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import fx, nn

import backbind
from backbind._operator import FunctionalOperator
from backbind.demo.bits import all_equal_bits
from backbind.demo.network import DigitNetwork


@dataclass(frozen=True)
class OperatorCall:
    """One node of a backward, called as a pure function."""

    operator: FunctionalOperator
    gradients: list[torch.Tensor | None]
    equal_bits: bool
    """Whether it gave what the node itself gives."""


def call_node(loss: torch.Tensor) -> OperatorCall:
    """Call the operator of the node that made ``loss``, and the node."""
    node = loss.grad_fn
    assert node is not None, "the loss of a network has a node"
    operator = backbind.ops.for_node(node)
    gradient = torch.ones_like(loss)
    ours = operator([gradient], *backbind.pack(node))
    theirs = node(gradient)  # type: ignore[operator] # torch's own types leave out that a node can be called
    given = theirs if isinstance(theirs, tuple) else (theirs,)
    return OperatorCall(operator, ours, all_equal_bits(zip(ours, given, strict=True)))


@dataclass(frozen=True)
class Traced:
    """What came of traced backwards. Times are seconds, medians."""

    count: int
    nodes: Counter[str]
    """Calls of node operators in the last graph, by name."""
    inline: int
    """Those among them that are compiled from their formulas."""
    gradients: int
    """How many were compared, over all graphs."""
    equal_bits: bool
    pickled_equal_bits: bool
    """Whether the last graph gave the same after it was pickled and loaded."""
    trace_time: float
    graph_time: float
    eager_time: float


def trace_backwards(network: DigitNetwork, batches: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> Traced:
    """Trace the backward of each batch, run the graph, and compare with the engine."""
    parameters = dict(network.named_parameters())
    times: list[tuple[float, float, float]] = []
    equal: list[bool] = []
    for images, labels in batches:
        network.zero_grad()
        loss = nn.functional.cross_entropy(network(images), labels)
        started = time.perf_counter()
        graph = backbind.trace(loss, parameters)
        traced = time.perf_counter()
        gradients = graph()
        ran = time.perf_counter()
        pickled = pickle.loads(pickle.dumps(graph))()
        before = time.perf_counter()
        loss.backward()
        times.append((traced - started, ran - traced, time.perf_counter() - before))
        equal.append(all_equal_bits((gradients[name], one.grad) for name, one in parameters.items()))
    names = Counter(_operators_of(graph))
    return Traced(
        count=len(times),
        nodes=names,
        inline=sum(backbind.ops.get(name).mode == "inline" for name in names.elements()),
        gradients=len(times) * len(parameters),
        equal_bits=all(equal),
        pickled_equal_bits=all_equal_bits((gradients[name], pickled[name]) for name in parameters),
        trace_time=statistics.median(one for one, _, _ in times),
        graph_time=statistics.median(one for _, one, _ in times),
        eager_time=statistics.median(one for _, _, one in times),
    )


def _operators_of(graph: fx.GraphModule) -> Iterator[str]:
    """Names of the node operators that a graph calls."""
    for node in graph.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            name = node.target._schema.name.removeprefix("backbind::")
            if hasattr(backbind.ops, name):
                yield name
