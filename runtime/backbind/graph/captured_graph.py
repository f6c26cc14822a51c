"""Prints a captured backward: a graph that is called with the values of any backward of its structure."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from torch import fx

from backbind.graph.lowering import Lifted, LoweredStep, Lowering
from backbind.graph.printer import Printer, snake_case

PLACEHOLDERS = ("inputs", "sizes", "scalars", "hooks", "packed_data")
"""What a captured graph is called with, each a list: tensors (the gradients of the outputs, leaves, saved tensors),
sizes and numbers that are not baked in, live nodes that run a user's code, and what their saved tensors were packed as.
"""


def build_captured_graph(
    lowering: Lowering, roots: Sequence[Lifted | None], result_count: int, *, follows_changes: bool
) -> fx.Graph:
    """The graph of a backward. ``roots`` names the gradient of each output; None for an undefined one.
    ``follows_changes`` is explained at `Printer`.
    """
    graph = fx.Graph()
    values = _LiftedValues(graph, lowering, roots)
    printer = Printer(graph, values, result_count, follows_changes=follows_changes)
    for root, gradient in zip(lowering.roots, roots, strict=True):
        if root.input is not None and gradient is not None:
            printer.print_root(values.lifted(gradient), root.input, root.expected)
    printer.print_steps(lowering)
    graph.output(tuple(printer.results))
    return graph


class _LiftedValues:
    """Values of the live graph as items of the lists that the graph is called with, each taken out once, at the top."""

    def __init__(self, graph: fx.Graph, lowering: Lowering, roots: Sequence[Lifted | None]) -> None:
        self._graph = graph
        self._lists = {name: graph.placeholder(name) for name in PLACEHOLDERS}
        self._items: dict[Lifted, fx.Node] = {}
        for number, root in enumerate(roots):
            if root is not None:
                self._take(root, f"root_{number}")
        for step in lowering.steps:
            for value, name in _lifted_values(step):
                self._take(value, name)

    def value(self, value: object, step: LoweredStep, argument: str) -> Any:  # noqa: ARG002  (a ValueSource)
        return self._items[value] if isinstance(value, Lifted) else value

    def lifted(self, value: Lifted) -> fx.Node:
        return self._items[value]

    def live_node(self, step: LoweredStep) -> fx.Node:
        assert isinstance(step.live, int)
        return self._items[Lifted("hooks", step.live)]

    def _take(self, value: Lifted, name: str) -> None:
        if value not in self._items:
            arguments = (self._lists[value.place], value.index)
            self._items[value] = self._graph.create_node(
                "call_function", operator.getitem, arguments, name=name
            )


def _lifted_values(step: LoweredStep) -> list[tuple[Lifted, str]]:
    """What a step takes out of the lists, and how it is called where this step is the first."""
    found: list[tuple[Lifted, str]] = []

    def visit(value: object, name: str) -> None:
        if isinstance(value, Lifted) and value.place != "unpacked":
            found.append((value, name))
        elif isinstance(value, list | tuple):
            for item in value:
                visit(item, name)

    prefix = snake_case(step.operator or step.node)
    if isinstance(step.live, int):
        found.append((Lifted("hooks", step.live), f"{prefix}_node"))
    visit(step.packed, f"{prefix}_saved")
    visit(step.leaf, "leaf")
    for expected in step.expected:
        if expected is not None:
            visit(expected.sizes, f"{prefix}_size")
    return found
