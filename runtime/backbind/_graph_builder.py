"""Prints the lowering of a backward as a graph module, in plain loops: nothing is run or traced again."""

from __future__ import annotations

import cmath
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from backbind._lowering import (
    AddToBuffer,
    Call,
    ExpectedGrad,
    InputRef,
    LoweredStep,
    Lowering,
    OnLiveNode,
    ReturnGrad,
    ValidateGrads,
)
from backbind._namespace import get
from backbind._operator import FunctionalOperator
from backbind._saved_tensors import SavedCopies, SavedTensor
from backbind._traced_backward import TracedBackward, check_used


def build_graph(
    lowering: Lowering,
    outputs: Sequence[torch.Tensor],
    result_count: int,
    names: tuple[str, ...] | None,
    *,
    allow_unused: bool,
    copy_saved: bool,
) -> TracedBackward:
    """The module of a backward with so many results; ``names`` are the keys of the dict that it returns, or None for
    a tuple.

    Raises RuntimeError, with the text of torch.autograd.grad, where an input has no gradient and none may be without.
    """
    return _Builder(lowering, result_count, copy_saved).build(outputs, names, allow_unused)


def snake_case(node: str) -> str:
    """The name of a call in the graph.

    >>> snake_case("MulBackward0"), snake_case("NativeLayerNormBackward0")
    ('mul_backward0', 'native_layer_norm_backward0')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", node).lower()


def gradient_name(functional: FunctionalOperator, edge_count: int, edge: int) -> str:
    """The name of one gradient that a call computes: by the input that it is for, where each has a single one."""
    inputs = functional.inputs
    which = inputs[edge] if len(inputs) == edge_count else str(edge)
    return f"{snake_case(functional.name)}_{which}"


@dataclass(slots=True)
class _Computed:
    """One gradient that a call computes; it is printed when it is added to a buffer."""

    call: fx.Node
    edge: int
    name: str
    expected: ExpectedGrad | None = None


class _Builder:
    """Holds the graph while it grows, and what each input buffer holds at that point of the backward."""

    def __init__(self, lowering: Lowering, result_count: int, copy_saved: bool) -> None:
        self._lowering = lowering
        self._copies = SavedCopies() if copy_saved else None
        self._graph = fx.Graph()
        self._module = torch.nn.Module()
        self._buffers: dict[InputRef, fx.Node] = {}
        self._results: list[fx.Node | None] = [None] * result_count
        self._saved: dict[tuple[int, bool], fx.Node] = {}
        self._kept: list[torch.Tensor] = []  # keeps the ids in _saved from being used again
        self._watched: list[SavedTensor] = []

    def build(
        self, outputs: Sequence[torch.Tensor], names: tuple[str, ...] | None, allow_unused: bool
    ) -> TracedBackward:
        self._enter(outputs)
        for position, step in enumerate(self._lowering.steps):
            self._print_step(position, step)
        if not allow_unused:
            check_used(self._results)
        results = tuple(self._results)
        self._graph.output(results if names is None else dict(zip(names, results, strict=True)))
        self._graph.lint()
        module = TracedBackward(self._module, self._graph, "TracedBackward")
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
            gradient = self._root_gradient(position, output, placeholders[position])
            root = self._lowering.roots[position]
            if root.input is not None:
                self._add_to_buffer(root.input, self._validated(gradient, "root", root.expected))

    def _root_gradient(self, position: int, output: torch.Tensor, given: fx.Node) -> fx.Node:
        is_real_scalar = output.numel() == 1 and output.is_floating_point()
        implicit = self._attribute(torch.ones_like(output)) if is_real_scalar else None
        sizes = None if output.is_nested else list(output.shape)
        arguments = (given, implicit, sizes, output.dtype, position)
        return self._call(torch.ops.backbind.root_gradient.default, arguments, "root")

    def _print_step(self, position: int, step: LoweredStep) -> None:
        incoming = [self._buffers.pop(InputRef(position, number), None) for number in range(step.num_inputs)]
        computed: list[_Computed] = []
        for operation in step.operations:
            match operation:
                case ReturnGrad(input_nr, result):
                    self._results[result] = incoming[input_nr]
                case Call():
                    computed = self._call_node(step, incoming)
                case ValidateGrads(expected):
                    for one, metadata in zip(computed, expected, strict=True):
                        one.expected = metadata
                case AddToBuffer(edge, input_ref):
                    self._add_to_buffer(input_ref, self._printed(computed[edge]))
                case OnLiveNode():
                    # No hook is there (backbind._refusals), no leaf accumulates, and a graph has nothing to release.
                    pass

    def _call_node(self, step: LoweredStep, incoming: Sequence[fx.Node | None]) -> list[_Computed]:
        assert step.operator is not None, "backbind._refusals lets no other step that is called through"
        functional = get(step.operator)
        arguments = (list(incoming), *(self._constant(value, step) for value in step.packed))
        call = self._call(functional.overload, arguments, snake_case(step.operator))
        count = len(step.expected)
        return [_Computed(call, edge, gradient_name(functional, count, edge)) for edge in range(count)]

    def _printed(self, computed: _Computed) -> fx.Node:
        """One of the gradients that a call computes, as its edge takes it."""
        gradient = self._call(operator.getitem, (computed.call, computed.edge), computed.name)
        return self._validated(gradient, computed.name, computed.expected)

    def _validated(self, gradient: fx.Node, name: str, expected: ExpectedGrad | None) -> fx.Node:
        if expected is None:
            return gradient
        arguments: tuple[object, ...] = (gradient, list(expected.sizes), expected.dtype)
        if expected.device is not None:
            arguments += (expected.device,)
        return self._call(torch.ops.backbind.validate_grad.default, arguments, f"{name}_validated")

    def _add_to_buffer(self, input_ref: InputRef, gradient: fx.Node) -> None:
        total = self._buffers.get(input_ref)
        if total is not None:
            gradient = self._call(torch.ops.backbind.sum_gradients.default, (total, gradient), "total")
        self._buffers[input_ref] = gradient

    def _call(self, target: Callable[..., Any], arguments: tuple[Any, ...], name: str) -> fx.Node:
        return self._graph.create_node("call_function", target, arguments, name=name)

    def _constant(self, value: object, step: LoweredStep) -> Any:
        if isinstance(value, torch.Tensor):
            return self._saved_tensor(value, step)
        if isinstance(value, list):
            return [self._constant(item, step) for item in value]
        if isinstance(value, complex) and not cmath.isfinite(value):
            return self._call(complex, (value.real, value.imag), "number")  # which has no literal
        return value

    def _saved_tensor(self, tensor: torch.Tensor, step: LoweredStep) -> fx.Node:
        """A saved tensor as a buffer; one that several nodes saved is one buffer."""
        # What an unpack hook gave is a buffer of its own: as in eager, nobody asks for its version.
        key = (id(tensor), step.has_unpack_hooks)
        known = self._saved.get(key)
        if known is not None:
            return known
        buffer = tensor.detach()
        if self._copies is not None:
            buffer = self._copies.copy(buffer)
        self._saved[key] = node = self._attribute(buffer)
        self._kept.append(tensor)
        if self._copies is None and not step.has_unpack_hooks:
            watched = SavedTensor.watch(str(node.target), buffer, step.node)
            self._watched += [] if watched is None else [watched]
        return node

    def _attribute(self, tensor: torch.Tensor) -> fx.Node:
        name = f"saved_{len(self._module._buffers)}"
        self._module.register_buffer(name, tensor)
        return self._graph.get_attr(name)
