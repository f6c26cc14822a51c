"""One call of an operator as a module: the form that every tracer, compiler and transform of torch takes.

The tensors of the call and its symbolic integers are inputs of the module; whatever else was saved is a constant in
its graph. Two calls that differ only in their inputs can therefore share one module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any

import torch
from torch import Tensor, fx

from tests.ops.node_set import Made

GRADS = "Tensor?[]"
"""Schema type of the first argument of every operator."""


@dataclass(frozen=True)
class Argument:
    """One value of a call with its place in the schema."""

    value: Any
    schema_type: str
    """``SymInt[]``"""

    def inputs(self) -> Iterator[Tensor | int]:
        """What of it is an input of the module, in order."""
        for leaf in self.value if isinstance(self.value, list | tuple) else [self.value]:
            if self.is_input(leaf):
                yield leaf

    def is_input(self, leaf: object) -> bool:
        return isinstance(leaf, Tensor) or (self.schema_type.startswith("SymInt") and isinstance(leaf, int))


def arguments_of(made: Made) -> list[Argument]:
    """The arguments of the call that equals running the node."""
    operator = made.operator
    flags, *saved = made.packed
    count = len(operator.inputs)
    leading = [Argument(made.grads, GRADS), Argument(flags, f"bool[{count}]")]
    return leading + [
        Argument(value, argument.schema_type) for value, argument in zip(saved, operator.saved, strict=True)
    ]


def inputs_of(made: Made) -> list[Tensor | int]:
    """The inputs for `call_module`: detached tensors and integers, in the order of the signature."""
    return [
        leaf.detach() if isinstance(leaf, Tensor) else leaf
        for argument in arguments_of(made)
        for leaf in argument.inputs()
    ]


def call_module(
    made: Made, target: Callable[..., Any] | None = None, results: Sequence[int] | None = None
) -> fx.GraphModule:
    """A module that calls ``target`` (the overload, unless given) as `made` would.

    It returns the whole list of gradients, or a tuple of those at ``results``.
    """
    graph = fx.Graph()
    arguments = arguments_of(made)
    count = sum(1 for argument in arguments for _ in argument.inputs())
    inputs = iter([graph.placeholder(f"input_{position}") for position in range(count)])

    def place(argument: Argument, leaf: object) -> Any:
        return next(inputs) if argument.is_input(leaf) else leaf

    placed = [
        [place(argument, leaf) for leaf in argument.value]
        if isinstance(argument.value, list | tuple)
        else place(argument, argument.value)
        for argument in arguments
    ]
    call = graph.call_function(made.operator.overload if target is None else target, tuple(placed))
    if results is None:
        graph.output(call)
    else:
        graph.output(tuple(graph.call_function(getitem, (call, position)) for position in results))
    return fx.GraphModule(torch.nn.Module(), graph)


def defined_results(made: Made) -> list[int]:
    """Positions of the gradients that are not None."""
    return [position for position, gradient in enumerate(made.call()) if gradient is not None]


def targets_of(module: fx.GraphModule) -> list[object]:
    """What the graph calls, in order, without taking lists apart."""
    return [
        node.target
        for node in module.graph.nodes
        if node.op == "call_function" and node.target is not getitem
    ]
