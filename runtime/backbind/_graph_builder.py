"""Builds the graph module of a traced backward, in plain loops: nothing is run or traced again."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.graph_module import reduce_graph_module

from backbind._namespace import get
from backbind._operator import FunctionalOperator
from backbind._walk import Slot, Target, Walk, WalkStep


class TracedBackward(fx.GraphModule):
    """The graph module of a backward.

    It runs, prints as Python, pickles and loads like any graph module; loading imports backbind, so that its operators
    are there. It runs without grad mode, as ``loss.backward()`` does: some formulas compute otherwise (and round
    otherwise) where their own gradient may be wanted.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            return super().__call__(*args, **kwargs)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        _, arguments = super().__reduce__()
        return load_traced_backward, arguments


def load_traced_backward(body: dict[Any, Any], import_block: str) -> TracedBackward:
    """Rebuilds a pickled TracedBackward."""
    module: Any = reduce_graph_module(body, import_block)
    return TracedBackward(module, module.graph, "TracedBackward")


def build_graph(walk: Walk, roots: Sequence[torch.Tensor], names: tuple[str, ...] | None) -> TracedBackward:
    """The module of a walk; ``names`` are the keys of the dict that it returns, or None for a tuple."""
    return _Builder(walk).build(roots, names)


def snake_case(node: str) -> str:
    """The name of a call in the graph.

    >>> snake_case("MulBackward0"), snake_case("NativeLayerNormBackward0")
    ('mul_backward0', 'native_layer_norm_backward0')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", node).lower()


def gradient_name(functional: FunctionalOperator, step: WalkStep, number: int) -> str:
    """The name of one gradient that a call computes: by the input that it is for, where each has a single one."""
    inputs = functional.inputs
    which = inputs[number] if len(inputs) == len(step.targets) else str(number)
    return f"{snake_case(functional.name)}_{which}"


class _Builder:
    """Holds the graph while it grows, and what each slot holds at that point of the backward."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._graph = fx.Graph()
        self._root = torch.nn.Module()
        self._values: dict[Slot, fx.Node] = {}
        self._handed_out: dict[Slot, fx.Node] = {}
        self._buffers: dict[int, fx.Node] = {}
        self._kept: list[torch.Tensor] = []  # keeps the ids in _buffers from being used again
        self._wanted = frozenset(slot for slot in walk.gradients if slot is not None)

    def build(self, roots: Sequence[torch.Tensor], names: tuple[str, ...] | None) -> TracedBackward:
        self._enter(roots)
        for position, step in enumerate(self._walk.steps):
            self._add_step(position, step)
        gradients = [None if slot is None else self._handed_out.get(slot) for slot in self._walk.gradients]
        self._graph.output(tuple(gradients) if names is None else dict(zip(names, gradients, strict=True)))
        self._graph.lint()
        return TracedBackward(self._root, self._graph, "TracedBackward")

    def _enter(self, roots: Sequence[torch.Tensor]) -> None:
        """One placeholder for each root; all stand before anything else, as fx wants it."""
        placeholders = [
            self._graph.placeholder(f"gradient_{position}", default_value=None)
            if root.numel() == 1
            else self._graph.placeholder(f"gradient_{position}")
            for position, root in enumerate(roots)
        ]
        for root, placeholder, slot in zip(roots, placeholders, self._walk.roots, strict=True):
            if slot is None:
                continue
            value = placeholder
            if root.numel() == 1:
                implicit = self._buffer(torch.ones_like(root))
                value = self._call(torch.ops.backbind.root_gradient.default, (placeholder, implicit), "root")
            self._arrive(slot, value)

    def _arrive(self, slot: Slot, gradient: fx.Node) -> None:
        total = self._values.get(slot)
        if total is not None:
            gradient = self._call(torch.ops.backbind.sum_gradients.default, (total, gradient), "total")
        self._values[slot] = gradient

    def _add_step(self, position: int, step: WalkStep) -> None:
        incoming = [self._values.pop(Slot(position, number), None) for number in range(step.incoming)]
        for number, value in enumerate(incoming):
            slot = Slot(position, number)
            if slot in self._wanted and value is not None:
                self._handed_out[slot] = value
        if not step.runs or step.operator is None:
            return
        arguments = (incoming, *(self._constant(value) for value in step.packed))
        functional = get(step.operator)
        call = self._call(functional.overload, arguments, snake_case(step.operator))
        for number, target in enumerate(step.targets):
            if target is not None:
                self._send(call, number, target, gradient_name(functional, step, number))

    def _send(self, call: fx.Node, number: int, target: Target, name: str) -> None:
        gradient = self._call(operator.getitem, (call, number), name)
        if target.fit is not None:
            fit = (gradient, list(target.fit.sizes), target.fit.dtype)
            gradient = self._call(torch.ops.backbind.fit_gradient.default, fit, f"{name}_fit")
        self._arrive(target.slot, gradient)

    def _call(self, target: Callable[..., Any], arguments: tuple[Any, ...], name: str) -> fx.Node:
        return self._graph.create_node("call_function", target, arguments, name=name)

    def _constant(self, value: object) -> Any:
        if isinstance(value, torch.Tensor):
            return self._buffer(value)
        if isinstance(value, list):
            return [self._constant(item) for item in value]
        return value

    def _buffer(self, tensor: torch.Tensor) -> fx.Node:
        """A saved tensor as a buffer; one that several nodes saved is one buffer."""
        known = self._buffers.get(id(tensor))
        if known is None:
            name = f"saved_{len(self._buffers)}"
            self._root.register_buffer(name, tensor.detach())
            known = self._graph.get_attr(name)
            self._buffers[id(tensor)] = known
            self._kept.append(tensor)
        return known
