"""Trains the network of the demonstration and compares each traced backward with eager's."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import fx, nn

import backbind
from backbind.demo.network import DigitNetwork


@dataclass(frozen=True)
class StepReport:
    """What one step showed. Times are seconds."""

    step: int
    loss: float
    nodes: int
    """Calls of node operators in the traced graph."""
    operators: int
    """Distinct ones among them."""
    inline: int
    delegate: int
    parameters: int
    largest_difference: float
    """Over all gradients of all parameters; 0 means equal bits (equality of bits is checked, too)."""
    equal_bits: bool
    trace_time: float
    graph_time: float
    eager_time: float


def train(images: torch.Tensor, labels: torch.Tensor, steps: int, batch: int = 64) -> Iterator[StepReport]:
    """Train for ``steps`` steps on ``images`` ``[n, 1, 8, 8]`` and ``labels`` ``[n]``; each step yields its report."""
    torch.manual_seed(0)
    network = DigitNetwork()
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for step in range(steps):
        chosen = torch.randint(len(images), (batch,))
        loss = nn.functional.cross_entropy(network(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        yield _take_apart(step, loss, dict(network.named_parameters()))
        optimizer.step()


def _take_apart(step: int, loss: torch.Tensor, parameters: dict[str, nn.Parameter]) -> StepReport:
    started = time.perf_counter()
    graph = backbind.trace(loss, parameters)
    traced = time.perf_counter()
    gradients = graph()
    replayed = time.perf_counter()
    loss.backward()
    finished = time.perf_counter()
    operators = Counter(_operators_of(graph))
    modes = Counter(backbind.ops.get(name).mode for name in operators.elements())
    differences = [_difference(gradients[name], parameter.grad) for name, parameter in parameters.items()]
    return StepReport(
        step=step,
        loss=loss.item(),
        nodes=operators.total(),
        operators=len(operators),
        inline=modes["inline"],
        delegate=modes["delegate"],
        parameters=len(parameters),
        largest_difference=max(differences),
        equal_bits=all(
            _equal_bits(gradients[name], parameter.grad) for name, parameter in parameters.items()
        ),
        trace_time=traced - started,
        graph_time=replayed - traced,
        eager_time=finished - replayed,
    )


def _operators_of(graph: fx.GraphModule) -> Iterator[str]:
    """Names of the node operators that a graph calls."""
    for node in graph.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            name = node.target._schema.name.removeprefix("backbind::")
            if hasattr(backbind.ops, name):
                yield name


def _difference(traced: torch.Tensor | None, eager: torch.Tensor | None) -> float:
    if traced is None or eager is None:
        return 0.0 if traced is eager else float("inf")
    return (traced - eager).abs().max().item()


def _equal_bits(traced: torch.Tensor | None, eager: torch.Tensor | None) -> bool:
    if traced is None or eager is None:
        return traced is eager
    return traced.dtype == eager.dtype and torch.equal(traced, eager)
