"""Prints a traced backward: saved values are buffers and constants of the module, gradients are arguments."""

from __future__ import annotations

import cmath
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from backbind import _C
from backbind._torch_private import rename
from backbind.graph import calls
from backbind.graph.lowering import LoweredStep, Lowering
from backbind.graph.printer import Printer, snake_case
from backbind.graph.saved_tensors import SavedCopies, SavedTensor
from backbind.graph.traced_backward import TracedBackward, check_used


def build_graph(
    lowering: Lowering,
    outputs: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    names: tuple[str, ...] | None,
    *,
    allow_unused: bool,
    copy_saved: bool,
    unpacked: frozenset[int] = frozenset(),
) -> TracedBackward:
    """The module of a backward. ``names`` are the keys of the dict that it returns, by which gradients and buffers of
    the inputs are called, too; None for a tuple. ``unpacked``: positions of the steps whose saved values are what
    unpack hooks gave.

    Raises RuntimeError, with the text of torch.autograd.grad, where an input has no gradient and none may be without.
    """
    graph = fx.Graph()
    hooked = [lowering.steps[position] for position in unpacked]
    words = [] if names is None else [_identifier(name, position) for position, name in enumerate(names)]
    # A tensor with several keys is called after the first of them.
    input_names = {id(one): f"saved_{word}" for one, word in reversed(list(zip(inputs, words, strict=False)))}
    values = _BakedValues(graph, copy_saved, hooked, input_names)
    printer = Printer(graph, values, len(inputs), follows_changes=False)
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
    # What an output is given keeps its name.
    words_of = dict(zip(reversed(results), reversed(words), strict=False))
    for result, word in words_of.items():
        if result is not None and result.op == "call_function":
            rename(result, f"grad_{word}")
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
    name = f"implicit_gradient_{position}"
    implicit = values.buffer(torch.ones_like(output), name) if is_real_scalar else None
    if implicit is not None and is_foreign:
        # A hook may change the gradient in place, which is to be one again at the next call.
        implicit = printer.call(torch.ops.aten.clone.default, (implicit,), "implicit")
    sizes = None if output.is_nested else list(output.shape)
    arguments = (given, implicit, sizes, output.dtype, position)
    return printer.call(torch.ops.backbind.root_gradient.default, arguments, "root")


class _BakedValues:
    """Values of the live graph as parts of the module: tensors are buffers, live nodes and symbols attributes."""

    def __init__(
        self, graph: fx.Graph, copy_saved: bool, hooked: Sequence[LoweredStep], input_names: Mapping[int, str]
    ) -> None:
        """``input_names``: how the buffers of some tensors are called, by the ids of these."""
        self.module = torch.nn.Module()
        self._graph = graph
        self._copies = SavedCopies() if copy_saved else None
        self._hooked = {id(step) for step in hooked}
        self._input_names = input_names
        self._same_names: Counter[str] = Counter()
        self._saved: dict[tuple[int, bool], fx.Node] = {}
        self._kept: list[torch.Tensor] = []  # keeps the ids in _saved from being used again
        self._watched: dict[fx.Node, SavedTensor] = {}
        self._live: dict[int, fx.Node] = {}

    @property
    def watched(self) -> list[SavedTensor]:
        """The buffers whose tensors others may change."""
        return list(self._watched.values())

    def value(self, value: object, step: LoweredStep, argument: str) -> Any:
        if isinstance(value, torch.Tensor):
            return self._saved_tensor(value, step, argument)
        if isinstance(value, complex) and not _has_literal(value):
            arguments = (value.real, value.imag)
            return self._graph.create_node("call_function", complex, arguments, name="number")
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return self._attribute("symbol", value)
        return value

    def live_node(self, step: LoweredStep) -> fx.Node:
        if id(step) not in self._live:
            assert isinstance(step.live, _C.LiveNode)
            self._live[id(step)] = self._attribute("node", step.live)
        return self._live[id(step)]

    def buffer(self, tensor: torch.Tensor, wanted: str) -> fx.Node:
        """A buffer that is called as wanted, or nearly so where another one is."""
        name = wanted
        while name in self.module._buffers:
            self._same_names[wanted] += 1
            name = f"{wanted}_{self._same_names[wanted]}"
        self.module.register_buffer(name, tensor)
        return self._graph.create_node("get_attr", name, name=name)

    def _attribute(self, prefix: str, value: object) -> fx.Node:
        name = f"{prefix}_{sum(one.startswith(prefix) for one in vars(self.module))}"
        setattr(self.module, name, value)
        return self._graph.create_node("get_attr", name, name=name)

    def _saved_tensor(self, tensor: torch.Tensor, step: LoweredStep, argument: str) -> fx.Node:
        """A saved tensor as a buffer; one that several nodes saved is one buffer."""
        # What an unpack hook gave is a buffer of its own: as in eager, nobody asks for its version.
        is_unpacked = id(step) in self._hooked
        key = (id(tensor), is_unpacked)
        if key not in self._saved:
            buffer = tensor.detach()
            if self._copies is not None:
                buffer = self._copies.copy(buffer)
            own = f"{snake_case(step.operator or step.node)}_saved_{argument}"
            self._saved[key] = node = self.buffer(buffer, self._input_names.get(id(tensor), own))
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


def _identifier(key: object, position: int) -> str:
    """What a key gives for a name, such as ``layer_0_weight``."""
    return re.sub(r"\W+", "_", str(key), flags=re.ASCII).strip("_") or f"input_{position}"


def _has_literal(value: complex) -> bool:
    """Whether what Python prints for a number is that number."""
    is_negative_zero = any(part == 0 and math.copysign(1, part) < 0 for part in (value.real, value.imag))
    return cmath.isfinite(value) and not is_negative_zero
