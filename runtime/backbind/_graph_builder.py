"""Builds the graph module of a traced backward, in plain loops: nothing is run or traced again."""

from __future__ import annotations

import cmath
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from backbind._namespace import get
from backbind._operator import FunctionalOperator
from backbind._saved_tensors import SavedCopies, SavedTensor
from backbind._traced_backward import TracedBackward, check_used
from backbind._walk import Arrival, ExpectedGrad, Slot, Walk, WalkStep


def build_graph(
    walk: Walk,
    outputs: Sequence[torch.Tensor],
    names: tuple[str, ...] | None,
    *,
    allow_unused: bool,
    copy_saved: bool,
) -> TracedBackward:
    """The module of a walk; ``names`` are the keys of the dict that it returns, or None for a tuple.

    Raises RuntimeError, with the text of torch.autograd.grad, where an input has no gradient and none may be without.
    """
    return _Builder(walk, copy_saved).build(outputs, names, allow_unused)


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

    def __init__(self, walk: Walk, copy_saved: bool) -> None:
        self._walk = walk
        self._copies = SavedCopies() if copy_saved else None
        self._graph = fx.Graph()
        self._root = torch.nn.Module()
        self._values: dict[Slot, fx.Node] = {}
        self._returned: dict[Slot, fx.Node] = {}
        self._buffers: dict[tuple[int, bool], fx.Node] = {}
        self._kept: list[torch.Tensor] = []  # keeps the ids in _buffers from being used again
        self._watched: list[SavedTensor] = []
        self._wanted = frozenset(slot for slot in walk.gradients if slot is not None)

    def build(
        self, outputs: Sequence[torch.Tensor], names: tuple[str, ...] | None, allow_unused: bool
    ) -> TracedBackward:
        self._enter(outputs)
        for position, step in enumerate(self._walk.steps):
            self._add_step(position, step)
        gradients = [None if slot is None else self._returned.get(slot) for slot in self._walk.gradients]
        if not allow_unused:
            check_used(gradients)
        self._graph.output(tuple(gradients) if names is None else dict(zip(names, gradients, strict=True)))
        self._graph.lint()
        module = TracedBackward(self._root, self._graph, "TracedBackward")
        module.watch(self._watched, allow_unused=allow_unused)
        return module

    def _enter(self, outputs: Sequence[torch.Tensor]) -> None:
        """One placeholder for each output; all stand before anything else, as fx wants it."""
        placeholders = [
            self._graph.placeholder(f"gradient_{position}", default_value=None)
            for position in range(len(outputs))
        ]
        for position, output in enumerate(outputs):
            # Also of an output that no input lies behind: what is wrong with its gradient is said all the same.
            root = self._root_gradient(position, output, placeholders[position])
            self._send(root, "root", self._walk.outputs[position])

    def _root_gradient(self, position: int, output: torch.Tensor, given: fx.Node) -> fx.Node:
        is_real_scalar = output.numel() == 1 and output.is_floating_point()
        implicit = self._buffer(torch.ones_like(output)) if is_real_scalar else None
        sizes = None if output.is_nested else list(output.shape)
        arguments = (given, implicit, sizes, output.dtype, position)
        return self._call(torch.ops.backbind.root_gradient.default, arguments, "root")

    def _send(self, gradient: fx.Node, name: str, arrival: Arrival | None) -> None:
        """Hands a gradient on: brings it to what is expected of it, and adds it to what has arrived before."""
        if arrival is None:
            return
        if arrival.expected is not None:
            gradient = self._validated(gradient, name, arrival.expected)
        total = self._values.get(arrival.slot)
        if total is not None:
            gradient = self._call(torch.ops.backbind.sum_gradients.default, (total, gradient), "total")
        self._values[arrival.slot] = gradient

    def _validated(self, gradient: fx.Node, name: str, expected: ExpectedGrad) -> fx.Node:
        arguments: tuple[object, ...] = (gradient, list(expected.sizes), expected.dtype)
        if expected.device is not None:
            arguments += (expected.device,)
        return self._call(torch.ops.backbind.validate_grad.default, arguments, f"{name}_validated")

    def _add_step(self, position: int, step: WalkStep) -> None:
        incoming = [self._values.pop(Slot(position, number), None) for number in range(step.incoming)]
        for number, value in enumerate(incoming):
            slot = Slot(position, number)
            if slot in self._wanted and value is not None:
                self._returned[slot] = value
        if not step.runs or step.operator is None:
            return
        arguments = (incoming, *(self._constant(value, step) for value in step.packed))
        functional = get(step.operator)
        call = self._call(functional.overload, arguments, snake_case(step.operator))
        for number, target in enumerate(step.targets):
            if target is not None:
                name = gradient_name(functional, step, number)
                self._send(self._call(operator.getitem, (call, number), name), name, target)

    def _call(self, target: Callable[..., Any], arguments: tuple[Any, ...], name: str) -> fx.Node:
        return self._graph.create_node("call_function", target, arguments, name=name)

    def _constant(self, value: object, step: WalkStep) -> Any:
        if isinstance(value, torch.Tensor):
            return self._saved(value, step)
        if isinstance(value, list):
            return [self._constant(item, step) for item in value]
        if isinstance(value, complex) and not cmath.isfinite(value):
            return self._call(complex, (value.real, value.imag), "number")  # which has no literal
        return value

    def _saved(self, tensor: torch.Tensor, step: WalkStep) -> fx.Node:
        """A saved tensor as a buffer; one that several nodes saved is one buffer."""
        # What an unpack hook gave is a buffer of its own: as in eager, nobody asks for its version.
        key = (id(tensor), step.has_unpack_hooks)
        known = self._buffers.get(key)
        if known is not None:
            return known
        buffer = tensor.detach()
        if self._copies is not None:
            buffer = self._copies.copy(buffer)
        self._buffers[key] = node = self._buffer(buffer)
        self._kept.append(tensor)
        if self._copies is None and not step.has_unpack_hooks:
            watched = SavedTensor.watch(str(node.target), buffer, step.node)
            self._watched += [] if watched is None else [watched]
        return node

    def _buffer(self, tensor: torch.Tensor) -> fx.Node:
        name = f"saved_{len(self._root._buffers)}"
        self._root.register_buffer(name, tensor)
        return self._graph.get_attr(name)
