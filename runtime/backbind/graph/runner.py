"""The backend ``graph``: a captured graph as one Python function that calls what it has to, directly.

torch.fx would generate much the same function. This one calls operators without the dispatcher's Python side, takes
tensors out of the list of inputs when they are needed, so that they are freed as early as eager frees them, hands the
last use of a gradient on to its leaf, and can be left in the middle (`backbind.graph.calls.leave_point`).
"""

from __future__ import annotations

import itertools
import linecache
import operator
import weakref
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
        self._operators: dict[str, object] = {}
        self._taken_names = {node.name for node in graph.nodes}
        self._moved = self._new_name("moved")
        self._returned = self._new_name("returned")
        self._release = self._new_name("release")
        self._called_step: int | None = None
        # The names that hold something at this point, in the order of the code.
        self._held: dict[str, None] = {}
        self._lines: list[str] = []
        self._dies_at = self._last_uses()
        self._taken_once = self._items_taken_once()

    def function(self) -> Runner:
        self._inputs = {node.name: node.args[1] for node in self._graph.nodes if _is_input(node)}
        # Behind the live nodes comes one through which steps are let go of.
        self._lines.append(f"{self._release} = hooks.pop().release_step")
        self._drop_unused_inputs()
        for node in self._graph.nodes:
            self._write(node)
        file = f"<backbind graph {next(_numbers)}>"
        source = "\n".join(
            [f"def run({', '.join(PLACEHOLDERS)}):", *(f"    {line}" for line in self._lines), ""]
        )
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), self._objects)
        # Not among its own globals, or it would not be freed with its last owner; its source is freed with it.
        function: Runner = self._objects.pop("run")  # type: ignore[assignment]
        weakref.finalize(function, linecache.cache.pop, file, None).atexit = False
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

    def _items_taken_once(self) -> set[fx.Node]:
        """What is taken out of lists that calls return, where nobody takes the same item again."""
        taken: dict[tuple[object, object], list[fx.Node]] = {}
        for node in self._graph.nodes:
            if node.target is operator.getitem and node.args[0].op == "call_function":
                taken.setdefault((node.args[0], node.args[1]), []).append(node)
        return {nodes[0] for nodes in taken.values() if len(nodes) == 1}

    def _drop_unused_inputs(self) -> None:
        """Lets go of those that a pass has left nobody to take."""
        used = set(self._inputs.values())
        count = max(used, default=-1) + 1
        self._lines.append(f"del inputs[{count}:]")
        self._lines += [f"inputs[{place}] = None" for place in range(count) if place not in used]

    def _take_inputs(self, node: fx.Node) -> None:
        """Those that nobody has taken before."""
        for used in node.all_input_nodes:
            place = self._inputs.pop(used.name, None)
            if place is not None:
                self._lines += [f"{used.name} = inputs[{place}]", f"inputs[{place}] = None"]
                self._held[used.name] = None

    def _write(self, node: fx.Node) -> None:
        if node.op == "placeholder" or _is_input(node):
            return
        if node.target not in _WITHIN_A_STEP:
            self._release_step()
        self._take_inputs(node)
        if node.op == "output":
            self._lines.append(f"return {self._text(node.args[0])}")
            return
        if node.target is calls.leave_point:
            self._write_leave_point(node)
        else:
            self._write_call(node)
        self._held.update(dict.fromkeys([node.name] if node.users else ()))
        self._forget([one.name for one in self._dies_at.get(node, ()) if one.op != "placeholder"])

    def _release_step(self) -> None:
        """Lets go of what the step saved whose operator was called last, once its gradients are known to be valid."""
        if self._called_step is not None:
            self._lines.append(f"{self._release}({self._called_step})")
            self._called_step = None

    def _write_call(self, node: fx.Node) -> None:
        moved = _moved(node)
        if moved:
            # Those that die here have no owner but the list, which the function empties.
            self._lines.append(f"{self._moved} = {self._text(list(moved))}")
            dead = self._dies_at.get(node, ())
            self._forget([one.name for one in moved if isinstance(one, fx.Node) and one in dead])
        self._lines.append(self._statement(node))
        self._called_step = node.meta.get("releases", self._called_step)
        if node in self._taken_once and node.args[0] not in self._dies_at.get(node, ()):
            # The list that a call returned holds a gradient no longer than the engine does.
            self._lines.append(f"{self._text(node.args[0])}[{node.args[1]}] = None")

    def _write_leave_point(self, node: fx.Node) -> None:
        """What goes on natively holds gradients and saved tensors by itself, and lets go of them as it goes."""
        live, first_step, has_called_pre_hooks, inputs, gradients, results = map(self._text, node.args)
        held = [name for name in self._held if name != live]
        is_within_step = node.args[2]
        self._lines.append(f"if {live}.must_be_left:" if is_within_step else f"if {live}.end_step():")
        self._lines.append(f"    {self._moved} = {gradients}")
        self._lines.append(f"    {self._returned} = {results}")
        self._lines.append("    inputs.clear()")
        if held:
            self._lines.append(f"    {' = '.join(held)} = None")
        arguments = (first_step, has_called_pre_hooks, inputs, self._moved, self._returned)
        self._lines.append(f"    return {live}.resume({', '.join(arguments)})")

    def _forget(self, names: Sequence[str]) -> None:
        held = [name for name in dict.fromkeys(names) if name in self._held]
        if held:
            self._lines.append(f"{' = '.join(held)} = None")
        for name in held:
            del self._held[name]

    def _statement(self, node: fx.Node) -> str:
        arguments = node.args
        if node.target is operator.getitem:
            return f"{node.name} = {self._text(arguments[0])}[{arguments[1]}]"
        if node.target is torch.ops.backbind.sum_gradients.default:
            return f"{node.name} = {self._object(_C.add_to_buffer, 'add_to_buffer')}({self._moved})"
        if node.target is calls.accumulate_grad:
            return f"{self._object(_C.accumulate_grad, 'accumulate_grad')}({self._text(arguments[0])}, {self._moved})"
        if node.target is calls.accumulate_grad_with_hooks:
            return f"{self._text(arguments[0])}.accumulate({self._moved})"
        if node.target is torch.ops.backbind.validate_grad.default:
            device = arguments[3] if len(arguments) == 4 else None
            # For the text of an error.
            arguments = (*arguments[:3], device, node.meta.get("autograd_node", ""), node.meta.get("edge", 0))
        if node.target in _TAKES_A_LIST:
            text = f"{self._text(arguments[0])}, {self._moved}"
        else:
            text = ", ".join(map(self._text, arguments))
        call = f"{self._target(node.target)}({text})"
        return f"{node.name} = {call}" if node.users else call

    def _target(self, target: object) -> str:
        if isinstance(target, torch._ops.OpOverload) and target.namespace == "backbind":
            name = target.name().partition("::")[2]
            if name == "validate_grad":
                return self._object(_C.validate_grad, name)
            if name not in self._operators:
                # Its arguments are those of a live node, which eager does not check either.
                self._operators[name] = get(name)._call_unchecked  # type: ignore[attr-defined]
            return self._object(self._operators[name], name)
        method = _METHODS.get(target)
        if method is not None:
            return self._object(method, method.__name__)
        return self._object(target, getattr(target, "__name__", "call"))

    def _new_name(self, name: str) -> str:
        """A name that nothing in the graph has: nodes of C++ may be called anything."""
        while name in self._taken_names:
            name += "_"
        self._taken_names.add(name)
        return name

    def _object(self, value: object, name: str) -> str:
        """The name of a global of the function that is this object."""
        known = self._names.get(id(value))
        if known is None:
            known = self._names[id(value)] = self._new_name(f"{name}_{len(self._objects)}")
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


def _is_input(node: fx.Node) -> bool:
    """Whether it takes a tensor out of the list of inputs."""
    if node.target is not operator.getitem or not isinstance(node.args[0], fx.Node):
        return False
    return node.args[0].op == "placeholder" and node.args[0].target == "inputs"


def _moved(node: fx.Node) -> tuple[Any, ...]:
    """The gradients that a call takes over if nobody else needs them."""
    if node.target is torch.ops.backbind.sum_gradients.default:
        return tuple(node.args)
    if node.target in (calls.accumulate_grad, calls.accumulate_grad_with_hooks):
        return tuple(node.args[-1:])
    if node.target in _TAKES_A_LIST:
        gradients = node.args[1]
        assert isinstance(gradients, list)
        return tuple(gradients)
    return ()


_TAKES_A_LIST = (calls.tensor_pre_hooks, calls.retain_grad, calls.pre_hooks, calls.call_node)
"""What is called with a live node and a list of gradients, which it empties."""

_WITHIN_A_STEP = (operator.getitem, torch.ops.backbind.validate_grad.default)
"""What a step does with the gradients that its operator has computed, before it adds them to buffers."""

_METHODS: dict[object, Any] = {
    calls.tensor_pre_hooks: _C.LiveNode.tensor_pre_hooks,
    calls.retain_grad: _C.LiveNode.retain_grad,
    calls.pre_hooks: _C.LiveNode.pre_hooks,
    calls.post_hooks: _C.LiveNode.post_hooks,
    calls.call_node: _C.LiveNode.call,
    calls.unpack: _C.LiveNode.unpack,
}
"""Methods of a live node that the functions of `calls` do nothing but call."""
