"""Prints a traced backward: saved values are buffers and constants of the module, gradients are arguments."""

from __future__ import annotations

import cmath
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from backbind import _C
from backbind.graph import calls
from backbind.graph.lowering import LoweredStep, Lowering
from backbind.graph.printer import Printer
from backbind.graph.saved_tensors import SavedCopies, SavedTensor
from backbind.graph.traced_backward import TracedBackward, check_used


def build_graph(
    lowering: Lowering,
    outputs: Sequence[torch.Tensor],
    result_count: int,
    names: tuple[str, ...] | None,
    *,
    allow_unused: bool,
    copy_saved: bool,
    unpacked: frozenset[int] = frozenset(),
) -> TracedBackward:
    """The module of a backward with so many results; ``names`` are the keys of the dict that it returns, or None for
    a tuple. ``unpacked``: positions of the steps whose saved values are what unpack hooks gave.

    Raises RuntimeError, with the text of torch.autograd.grad, where an input has no gradient and none may be without.
    """
    graph = fx.Graph()
    hooked = [lowering.steps[position] for position in unpacked]
    values = _BakedValues(graph, copy_saved, hooked)
    printer = Printer(graph, values, result_count, follows_changes=False)
    is_foreign = any(step.is_foreign for step in lowering.steps)
    # All placeholders stand before anything else, as fx wants it.
    placeholders = [graph.placeholder(f"gradient_{i}", default_value=None) for i in range(len(outputs))]
    for position, output in enumerate(outputs):
        # Also of an output that no input lies behind: what is wrong with its gradient is said all the same.
        given = placeholders[position]
        gradient = _root_gradient(printer, values, position, output, given, is_foreign=is_foreign)
        root = lowering.roots[position]
        if root.input is not None:
            printer.print_root(gradient, root.input, root.expected)
    printer.print_steps(lowering)
    if not allow_unused:
        check_used(printer.results)
    results = tuple(printer.results)
    graph.output(results if names is None else dict(zip(names, results, strict=True)))
    graph.lint()
    module = TracedBackward(values.module, graph, "TracedBackward")
    module.watch(values.watched, allow_unused=allow_unused)
    return module


def _root_gradient(
    printer: Printer,
    values: _BakedValues,
    position: int,
    output: torch.Tensor,
    given: fx.Node,
    *,
    is_foreign: bool,
) -> fx.Node:
    is_real_scalar = output.numel() == 1 and output.is_floating_point()
    implicit = values.buffer(torch.ones_like(output)) if is_real_scalar else None
    if implicit is not None and is_foreign:
        # A hook may change the gradient in place, which is to be one again at the next call.
        implicit = printer.call(torch.ops.aten.clone.default, (implicit,), "implicit")
    sizes = None if output.is_nested else list(output.shape)
    arguments = (given, implicit, sizes, output.dtype, position)
    return printer.call(torch.ops.backbind.root_gradient.default, arguments, "root")


class _BakedValues:
    """Values of the live graph as parts of the module: tensors are buffers, live nodes and symbols attributes."""

    def __init__(self, graph: fx.Graph, copy_saved: bool, hooked: Sequence[LoweredStep]) -> None:
        self.module = torch.nn.Module()
        self._graph = graph
        self._copies = SavedCopies() if copy_saved else None
        self._hooked = {id(step) for step in hooked}
        self._saved: dict[tuple[int, bool], fx.Node] = {}
        self._kept: list[torch.Tensor] = []  # keeps the ids in _saved from being used again
        self._watched: dict[fx.Node, SavedTensor] = {}
        self._live: dict[int, fx.Node] = {}

    @property
    def watched(self) -> list[SavedTensor]:
        """The buffers whose tensors others may change."""
        return list(self._watched.values())

    def value(self, value: object, step: LoweredStep) -> Any:
        if isinstance(value, torch.Tensor):
            return self._saved_tensor(value, step)
        if isinstance(value, complex) and not cmath.isfinite(value):
            arguments = (value.real, value.imag)  # which has no literal
            return self._graph.create_node("call_function", complex, arguments, name="number")
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return self._attribute("symbol", value)
        return value

    def live_node(self, step: LoweredStep) -> fx.Node:
        if id(step) not in self._live:
            assert isinstance(step.live, _C.LiveNode)
            self._live[id(step)] = self._attribute("node", step.live)
        return self._live[id(step)]

    def buffer(self, tensor: torch.Tensor) -> fx.Node:
        name = f"saved_{len(self.module._buffers)}"
        self.module.register_buffer(name, tensor)
        return self._graph.get_attr(name)

    def _attribute(self, prefix: str, value: object) -> fx.Node:
        name = f"{prefix}_{sum(one.startswith(prefix) for one in vars(self.module))}"
        setattr(self.module, name, value)
        return self._graph.create_node("get_attr", name, name=name)

    def _saved_tensor(self, tensor: torch.Tensor, step: LoweredStep) -> fx.Node:
        """A saved tensor as a buffer; one that several nodes saved is one buffer."""
        # What an unpack hook gave is a buffer of its own: as in eager, nobody asks for its version.
        is_unpacked = id(step) in self._hooked
        key = (id(tensor), is_unpacked)
        if key not in self._saved:
            buffer = tensor.detach()
            if self._copies is not None:
                buffer = self._copies.copy(buffer)
            self._saved[key] = node = self.buffer(buffer)
            self._kept.append(tensor)
            if self._copies is None and not is_unpacked:
                watched = SavedTensor.watch(str(node.target), buffer, step.node)
                if watched is not None:
                    self._watched[node] = watched
        return self._unchanged(self._saved[key])

    def _unchanged(self, buffer: fx.Node) -> fx.Node:
        """The buffer, which is looked at once more if a user's code has been called before this point of the graph."""
        watched = self._watched.get(buffer)
        if watched is None or not self._live:
            return buffer
        arguments = (buffer, self._attribute("watched", watched))
        return self._graph.create_node(
            "call_function", calls.unchanged, arguments, name=f"{buffer.name}_unchanged"
        )
