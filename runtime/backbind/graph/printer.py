"""Prints the lowering of a backward as a torch.fx graph, in plain loops: nothing is run or traced again.

`trace` and the graph backends differ in where the values of the live graph come from (`ValueSource`) and in nothing
else: sums, validation, hooks and the order of all of it are printed here.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import fx

from backbind._namespace import get
from backbind.graph import calls
from backbind.graph.lowering import (
    Accumulate,
    AddToBuffer,
    Call,
    CallHooks,
    ExpectedGrad,
    InputRef,
    Lifted,
    LoweredStep,
    Lowering,
    Release,
    ReturnGrad,
    ValidateGrads,
)


class ValueSource(Protocol):
    """Where a graph takes the values of the live graph from."""

    def value(self, value: object, step: LoweredStep, argument: str) -> Any:
        """A saved value, a leaf or a size, as an argument in the graph; ``argument`` is what the operator calls it.
        `Lifted` values that are unpacked by the step itself are not asked for.
        """
        ...

    def live_node(self, step: LoweredStep) -> fx.Node:
        """The live node of a step that runs code of a user."""
        ...


@functools.cache
def snake_case(node: str) -> str:
    """The name of a call in the graph.

    >>> snake_case("MulBackward0"), snake_case("NativeLayerNormBackward0")
    ('mul_backward0', 'native_layer_norm_backward0')
    >>> snake_case("torch::autograd::CopySlices")
    'copy_slices'
    """
    name = re.sub(r"\W", "_", node.rpartition("::")[2])
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@functools.cache
def gradient_names(operator_name: str, edge_count: int) -> tuple[str, ...]:
    """The names of the gradients that an operator computes: by the input that each is for, where each has a single one.

    >>> gradient_names("MulBackward0", 2)
    ('mul_backward0_self', 'mul_backward0_other')
    """
    inputs = get(operator_name).inputs
    which = inputs if len(inputs) == edge_count else tuple(map(str, range(edge_count)))
    return tuple(f"{snake_case(operator_name)}_{one}" for one in which)


@functools.cache
def argument_names(operator_name: str) -> tuple[str, ...]:
    """What an operator calls its arguments behind the gradients.

    >>> argument_names("TanhBackward0")
    ('needs_input_grad', 'result')
    """
    return tuple(one.name for one in get(operator_name).overload._schema.arguments[1:])


@dataclass(slots=True)
class _Computed:
    """One gradient that a step computes; it is printed when somebody takes it."""

    call: fx.Node
    edge: int
    name: str
    expected: ExpectedGrad | None = None
    printed: fx.Node | None = None


class Printer:
    """Holds the graph while it grows, and what each input buffer holds at that point of the backward."""

    def __init__(
        self, graph: fx.Graph, values: ValueSource, result_count: int, *, follows_changes: bool
    ) -> None:
        """``follows_changes``: behind a user's code, which may change what lies ahead, the graph can be left."""
        self._graph = graph
        self._values = values
        self._follows_changes = follows_changes
        self._buffers: dict[InputRef, fx.Node] = {}
        self.results: list[fx.Node | None] = [None] * result_count
        self._step: LoweredStep | None = None

    def print_root(self, gradient: fx.Node, input_ref: InputRef, expected: ExpectedGrad | None) -> None:
        """The gradient of an output, which enters at an input."""
        self._add_to_buffer(input_ref, self._validated(gradient, "root", expected))

    def print_steps(self, lowering: Lowering) -> None:
        """All of them, in the engine's order."""
        for position, step in enumerate(lowering.steps):
            self._step = step
            self._print_step(position, step)
            if self._follows_changes and step.is_foreign:
                self._print_leave_point(position + 1, step, ())

    def call(self, target: Callable[..., Any], arguments: tuple[Any, ...], name: str) -> fx.Node:
        """A call, which remembers the step that it belongs to."""
        node = self._graph.create_node("call_function", target, arguments, name=name)
        if self._step is not None:
            node.meta["autograd_node"] = self._step.node
        return node

    def _print_step(self, position: int, step: LoweredStep) -> None:
        incoming = [self._buffers.pop(InputRef(position, number), None) for number in range(step.num_inputs)]
        computed: list[_Computed] = []
        for operation in step.operations:
            match operation:
                case ReturnGrad(input_nr, result):
                    self.results[result] = incoming[input_nr]
                case CallHooks("post_hooks"):
                    if step.has_hooks(operation):
                        computed = self._call_post_hooks(step, computed, incoming)
                case CallHooks(kind):
                    if step.has_hooks(operation):
                        incoming = self._call_hooks(kind, step, incoming)
                case Call() | Accumulate():
                    if self._follows_changes and step.has_pre_hooks:
                        self._print_leave_point(position, step, incoming)
                    computed = self._run(operation, position, step, incoming)
                case ValidateGrads(expected):
                    for one, metadata in zip(computed, expected, strict=False):
                        one.expected = metadata
                    # All of them before the first is added, as in the engine: with a graph that is built, later
                    # backwards go by that order.
                    for one in computed:
                        if one.expected is not None:
                            self._printed(one)
                case AddToBuffer(edge, input_ref):
                    self._add_to_buffer(input_ref, self._printed(computed[edge]))
                case Release():
                    pass  # a graph holds no saved values; those of live nodes are let go of by csrc/graph/graph_run

    def _run(
        self,
        operation: Call | Accumulate,
        position: int,
        step: LoweredStep,
        incoming: Sequence[fx.Node | None],
    ) -> list[_Computed]:
        if isinstance(operation, Call):
            return self._call_node(position, step, incoming)
        self._accumulate(operation.leaf, step, incoming[0])
        return []

    def _call_hooks(
        self, kind: str, step: LoweredStep, incoming: Sequence[fx.Node | None]
    ) -> list[fx.Node | None]:
        arguments = (self._values.live_node(step), list(incoming))
        changed = self.call(getattr(calls, kind), arguments, f"{snake_case(step.node)}_{kind}")
        name = f"{snake_case(step.node)}_gradient"
        return [self.call(operator.getitem, (changed, number), name) for number in range(step.num_inputs)]

    def _call_post_hooks(
        self, step: LoweredStep, computed: Sequence[_Computed], incoming: Sequence[fx.Node | None]
    ) -> list[_Computed]:
        results = [self._printed(one) for one in computed]
        arguments = (self._values.live_node(step), results, list(incoming))
        changed = self.call(calls.post_hooks, arguments, f"{snake_case(step.node)}_post_hooks")
        return [_Computed(changed, one.edge, one.name) for one in computed]

    def _call_node(
        self, position: int, step: LoweredStep, incoming: Sequence[fx.Node | None]
    ) -> list[_Computed]:
        count = len(step.expected)
        name = snake_case(step.operator or step.node)
        if step.operator is None:
            call = self.call(calls.call_node, (self._values.live_node(step), list(incoming)), name)
            return [_Computed(call, edge, f"{name}_{edge}") for edge in range(count)]
        functional = get(step.operator)
        unpacked = None
        if step.unpacks:
            unpacked = self.call(calls.unpack, (self._values.live_node(step),), f"{name}_unpacked")
        arguments = (list(incoming), *self._saved_arguments(step, unpacked))
        call = self.call(functional.overload, arguments, name)
        if self._follows_changes and not step.is_foreign:
            call.meta["releases"] = position
        names = gradient_names(step.operator, count)
        return [_Computed(call, edge, names[edge]) for edge in range(count)]

    def _saved_arguments(self, step: LoweredStep, unpacked: fx.Node | None) -> list[Any]:
        """``needs_input_grad`` and what the node saved, as arguments of its operator."""
        assert step.operator is not None
        names = argument_names(step.operator)
        return [
            self._argument(value, step, unpacked, name)
            for name, value in zip(names, step.packed, strict=True)
        ]

    def _argument(self, value: object, step: LoweredStep, unpacked: fx.Node | None, name: str) -> Any:
        if isinstance(value, list):
            return [self._argument(item, step, unpacked, name) for item in value]
        if isinstance(value, Lifted) and value.place == "unpacked":
            assert unpacked is not None
            return self.call(operator.getitem, (unpacked, value.index), f"{snake_case(step.node)}_saved")
        return self._values.value(value, step, name)

    def _accumulate(self, leaf: torch.Tensor | Lifted, step: LoweredStep, gradient: fx.Node | None) -> None:
        if "post-accumulate-grad hook" in step.hooks:
            arguments: tuple[Any, ...] = (
                self._values.live_node(step),
                self._values.value(leaf, step, "leaf"),
                gradient,
            )
            self.call(calls.accumulate_grad_with_hooks, arguments, "accumulate_grad")
        elif gradient is not None:
            self.call(
                calls.accumulate_grad, (self._values.value(leaf, step, "leaf"), gradient), "accumulate_grad"
            )

    def _printed(self, computed: _Computed) -> fx.Node:
        """One of the gradients that a call computes, as its edge takes it."""
        if computed.printed is None:
            gradient = self.call(operator.getitem, (computed.call, computed.edge), computed.name)
            computed.printed = self._validated(gradient, computed.name, computed.expected, computed.edge)
        return computed.printed

    def _validated(
        self, gradient: fx.Node, name: str, expected: ExpectedGrad | None, edge: int = 0
    ) -> fx.Node:
        if expected is None:
            return gradient
        sizes = [
            self._values.value(size, self._step, "size") if self._step else size for size in expected.sizes
        ]
        arguments: tuple[object, ...] = (gradient, sizes, expected.dtype)
        if expected.device is not None:
            arguments += (expected.device,)
        valid = self.call(torch.ops.backbind.validate_grad.default, arguments, f"{name}_validated")
        valid.meta["edge"] = edge
        return valid

    def _add_to_buffer(self, input_ref: InputRef, gradient: fx.Node) -> None:
        total = self._buffers.get(input_ref)
        if total is not None:
            gradient = self.call(torch.ops.backbind.sum_gradients.default, (total, gradient), "total")
        self._buffers[input_ref] = gradient

    def _print_leave_point(
        self, first_step: int, step: LoweredStep, incoming: Sequence[fx.Node | None]
    ) -> None:
        """``incoming``: what has come in at the first step, where its hooks have been called."""
        inputs = [(first_step, number) for number in range(len(incoming))]
        inputs += [(input_ref.step, input_ref.input_nr) for input_ref in self._buffers]
        gradients = [*incoming, *self._buffers.values()]
        live = self._values.live_node(step)
        arguments = (live, first_step, bool(incoming), inputs, gradients, list(self.results))
        self.call(calls.leave_point, arguments, "leave_point")
