"""The backend ``graph``: a captured graph as one Python function that calls what it has to, directly.

torch.fx would generate much the same function. This one calls operators without the dispatcher's Python side, empties
the list of inputs, so that tensors are freed as early as eager frees them, hands the last use of a gradient on to its
leaf, and can be left in the middle (`backbind.graph.calls.leave_point`).
"""

from __future__ import annotations

import itertools
import linecache
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from backbind import _C
from backbind._namespace import get
from backbind.graph import calls
from backbind.graph.captured_graph import PLACEHOLDERS

Runner = Callable[..., Sequence[torch.Tensor | None]]

_numbers = itertools.count()
"""Gives each function a file name of its own, by which tracebacks find its lines."""


def make_runner(graph: fx.Graph) -> Runner:
    """The function of a captured graph: it takes the five lists, and returns the gradients that were asked for."""
    return _Writer(graph).function()


class _Writer:
    """Writes the source of the function, and collects the objects that it names."""

    def __init__(self, graph: fx.Graph) -> None:
        self._graph = graph
        self._objects: dict[str, object] = {}
        self._names: dict[int, str] = {}
        self._lines: list[str] = []
        self._dies_at = self._last_uses()

    def function(self) -> Runner:
        for node in self._graph.nodes:
            self._write(node)
        file = f"<backbind graph {next(_numbers)}>"
        source = "\n".join([f"def run({', '.join(PLACEHOLDERS)}):", *(f"    {line}" for line in self._lines), ""])
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), self._objects)
        function: Runner = self._objects["run"]  # type: ignore[assignment]
        return function

    def _last_uses(self) -> dict[fx.Node, list[fx.Node]]:
        """For each node, the nodes that nobody needs behind it."""
        dies_at: dict[fx.Node, list[fx.Node]] = {}
        seen: set[fx.Node] = set()
        for node in reversed(self._graph.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    dies_at.setdefault(node, []).append(used)
        return dies_at

    def _write(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            return
        if node.op == "output":
            self._lines.append(f"return {self._text(node.args[0])}")
            return
        dead = [one.name for one in self._dies_at.get(node, ()) if one.op != "placeholder"]
        self._lines.append(self._statement(node, dead))
        if not node.users:
            dead = [name for name in dead if name != node.name]
        if dead:
            self._lines.append(f"{' = '.join(dead)} = None")
        if _is_last_input(node):
            self._lines.append("inputs.clear()")

    def _statement(self, node: fx.Node, dead: Sequence[str]) -> str:
        arguments = node.args
        if node.target is operator.getitem:
            return f"{node.name} = {self._text(arguments[0])}[{arguments[1]}]"
        if node.target is calls.leave_point:
            live, step, inputs, gradients, results = (self._text(one) for one in arguments)
            return f"if {live}.must_be_left: return {live}.resume({step}, {inputs}, {gradients}, {results})"
        if node.target is calls.accumulate_grad:
            leaf, gradient = arguments
            assert isinstance(gradient, fx.Node)
            is_last_use = gradient.name in dead and _has_one_use(gradient)
            target = self._object(_C.accumulate_grad, "accumulate_grad")
            return f"{target}({self._text(leaf)}, {self._text(gradient)}, {is_last_use})"
        text = ", ".join(map(self._text, arguments))
        call = f"{self._target(node.target)}({text})"
        return f"{node.name} = {call}" if node.users else call

    def _target(self, target: object) -> str:
        if isinstance(target, torch._ops.OpOverload) and target.namespace == "backbind":
            name = target.name().partition("::")[2]
            return self._object(_GRADIENT_FUNCTIONS.get(name) or get(name), name)
        method = _METHODS.get(target)  # type: ignore[call-overload]
        if method is not None:
            return self._object(method, method.__name__)
        return self._object(target, getattr(target, "__name__", "call"))

    def _object(self, value: object, name: str) -> str:
        """The name of a global of the function that is this object."""
        known = self._names.get(id(value))
        if known is None:
            known = self._names[id(value)] = f"{name}_{len(self._objects)}"
            self._objects[known] = value
        return known

    def _text(self, value: object) -> str:
        if isinstance(value, fx.Node):
            return value.name
        if isinstance(value, list | tuple):
            if all(isinstance(item, fx.Node) or item is None for item in value):
                return f"[{', '.join(map(self._text, value))}]"
            if not any(isinstance(item, fx.Node) for item in value):
                return self._object(_plain(value), "constant")
            return f"[{', '.join(map(self._text, value))}]"
        if value is None or isinstance(value, bool | int | str):
            return repr(value)
        return self._object(value, "constant")


def _plain(value: Any) -> Any:
    """Lists as lists: fx keeps its own kind, which cannot be changed."""
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _is_last_input(node: fx.Node) -> bool:
    """Whether it takes the last tensor out of the list of inputs."""
    if node.target is not operator.getitem or not isinstance(node.args[0], fx.Node):
        return False
    inputs = node.args[0]
    return inputs.op == "placeholder" and inputs.target == "inputs" and next(reversed(inputs.users)) is node


def _has_one_use(node: fx.Node) -> bool:
    return len(node.users) == 1 and sum(one is node for one in next(iter(node.users)).all_input_nodes) == 1


_GRADIENT_FUNCTIONS: dict[str, object] = {
    "validate_grad": _C.validate_grad,
    "sum_gradients": _C.sum_gradients,
}
"""Functions of the compiled part that do the same as operators, without the dispatcher."""

_METHODS: dict[object, Any] = {
    calls.tensor_pre_hooks: _C.LiveNode.tensor_pre_hooks,
    calls.retain_grad: _C.LiveNode.retain_grad,
    calls.pre_hooks: _C.LiveNode.pre_hooks,
    calls.post_hooks: _C.LiveNode.post_hooks,
    calls.call_node: _C.LiveNode.call,
    calls.unpack: _C.LiveNode.unpack,
    calls.accumulate_grad_with_hooks: _C.LiveNode.accumulate,
}
"""Methods of a live node that the functions of `calls` do nothing but call."""
