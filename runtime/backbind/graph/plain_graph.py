"""A traced backward as plain records, without the live objects that a graph may hold: what is saved and printed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import fx

from backbind import _C
from backbind._namespace import load_operators
from backbind.graph import calls
from backbind.graph.saved_tensors import SavedTensor

Hooks: TypeAlias = Literal["refuse", "drop"]


@dataclass(frozen=True, slots=True)
class Reference:
    """Stands for what an earlier record gives."""

    name: str


@dataclass(frozen=True, slots=True)
class Record:
    """A value of the graph."""

    name: str
    kind: Literal["gradient", "constant", "call"]
    """A gradient that the graph is called with, a buffer, or the result of a call."""
    target: str
    """Name of the buffer, or what is called: ``backbind::MulBackward0``, ``getitem``. Empty for a gradient."""
    arguments: tuple[Any, ...] = ()
    node: str | None = None
    """Name of the autograd node that a call belongs to."""
    edge: int | None = None
    """Which of that node's gradients a call brings to what is expected of it."""


@dataclass(frozen=True, slots=True)
class PlainGraph:
    """A whole traced backward."""

    records: tuple[Record, ...]
    results: tuple[Reference | None, ...]
    names: tuple[str, ...] | None
    """The keys of the dict that it returns; None for a tuple."""
    allow_unused: bool
    constants: Mapping[str, torch.Tensor]
    """The buffers, in the order in which the records mention them."""


GRADIENT_OPERATORS = ("root_gradient", "sum_gradients", "validate_grad")

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "aten::clone": torch.ops.aten.clone.default,
    "complex": complex,
    "getitem": operator.getitem,
}
"""What a graph calls besides operators of backbind."""

_HOOKS: dict[object, str] = {
    calls.tensor_pre_hooks: "tensor hook",
    calls.retain_grad: "retained gradient",
    calls.pre_hooks: "node pre-hook",
    calls.post_hooks: "node post-hook",
}
"""Calls of hooks, which take and give a list of gradients; without its hooks a graph takes that list as it is."""


def resolve(target: str) -> Callable[..., Any] | None:
    """What a record calls; None for everything that a traced backward never calls.

    Nothing but these few names is ever looked up, so that no file can name anything else.
    """
    if target in _FUNCTIONS:
        return _FUNCTIONS[target]
    namespace, _, name = target.partition("::")
    if namespace != "backbind":
        return None
    if name in GRADIENT_OPERATORS:
        overload: Callable[..., Any] = getattr(torch.ops.backbind, name).default
        return overload
    found = load_operators().get(name)
    return None if found is None else found.overload


def plain_graph(module: fx.GraphModule, *, allow_unused: bool, hooks: Hooks) -> PlainGraph:
    """The records of a graph module that `backbind.trace` made.

    Raises:
        TypeError: the graph runs code of this process, or holds something else that means nothing elsewhere; each is
            listed. With ``hooks="drop"`` hooks are left out, and the rest is listed.
        ValueError: ``hooks`` is something else.
    """
    if hooks not in ("refuse", "drop"):
        raise ValueError(f"hooks must be 'refuse' or 'drop', got {hooks!r}")
    reader = _Reader(module, drops_hooks=hooks == "drop")
    for node in module.graph.nodes:
        reader.read(node)
    reader.raise_problems()
    names = reader.names
    constants = {
        one.target: module.get_buffer(one.target) for one in reader.records if one.kind == "constant"
    }
    return PlainGraph(tuple(reader.records), reader.results, names, allow_unused, constants)


class _Reader:
    """Reads the nodes of a graph in their order."""

    def __init__(self, module: fx.GraphModule, *, drops_hooks: bool) -> None:
        self.records: list[Record] = []
        self.results: tuple[Reference | None, ...] = ()
        self.names: tuple[str, ...] | None = None
        self._module = module
        self._drops_hooks = drops_hooks
        self._values: dict[fx.Node, Any] = {}
        self._hooks: list[str] = []
        self._others: list[str] = []

    def read(self, node: fx.Node) -> None:
        match node.op:
            case "placeholder" if node.args == (None,):
                self._add(Record(node.name, "gradient", ""), node)
            case "get_attr":
                self._read_attribute(node)
            case "call_function":
                self._read_call(node)
            case "output":
                self._read_output(node.args[0])
            case _:
                self._refuse(node, f"'{node.op}' of '{node.target}', which no trace makes")

    def raise_problems(self) -> None:
        if not self._hooks and not self._others:
            return
        lines = [f"  {one}" for one in dict.fromkeys([*self._hooks, *self._others])]
        text = "\n".join(["this graph holds what means nothing outside of this process:", *lines])
        if self._hooks:
            text += "\nhooks='drop' leaves the hooks out"
            text += "; the rest cannot be left out" if self._others else ""
        if any(one.endswith("hooks of saved tensors") for one in self._others):
            text += "\nbackbind.trace(..., unpack_hooks=True) calls those of saved tensors once, and keeps results"
        raise TypeError(text)

    def _add(self, record: Record, node: fx.Node) -> None:
        self.records.append(record)
        self._values[node] = Reference(record.name)

    def _refuse(self, node: fx.Node, what: str) -> None:
        self._others.append(f"{node.meta.get('autograd_node', node.name)}: {what}")
        # What is made of it is not looked at: one mistake is told once.
        self._values[node] = None

    def _read_attribute(self, node: fx.Node) -> None:
        name = str(node.target)
        value = self._module._buffers.get(name, getattr(self._module, name, None))
        if isinstance(value, torch.Tensor) and name in self._module._buffers:
            self._add(Record(node.name, "constant", name), node)
        elif isinstance(value, _C.LiveNode | SavedTensor):
            self._values[node] = value  # whoever takes it is looked at
        elif isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            self._others.append(f"{value}: a symbol, the size of jagged tensors")
            self._values[node] = None
        else:
            self._refuse(node, f"an attribute of type {type(value).__name__}")

    def _read_call(self, node: fx.Node) -> None:
        arguments = self._arguments(node.args)
        if node.target is calls.unchanged:
            self._values[node] = arguments[0]
        elif node.target in _HOOKS:
            if not self._drops_hooks:
                self._hooks.append(f"{arguments[0].name}: {_HOOKS[node.target]}")
            self._values[node] = arguments[1]
        elif node.target is operator.getitem and isinstance(arguments[0], list | tuple | None):
            self._values[node] = arguments[0][arguments[1]] if arguments[0] is not None else None
        elif node.target is calls.call_node:
            self._refuse(node, _kind_of_function(arguments[0]))
        elif node.target is calls.unpack:
            self._refuse(node, "unpack hooks of saved tensors")
        elif (target := _name_of(node.target)) is None:
            self._refuse(node, f"a call of '{node.target}', which no trace makes")
        elif node.kwargs:
            self._refuse(node, f"a call of '{target}' by keywords, which no trace makes")
        else:
            meta = node.meta
            record = Record(node.name, "call", target, arguments, meta.get("autograd_node"), meta.get("edge"))
            self._add(record, node)

    def _read_output(self, results: Any) -> None:
        if isinstance(results, dict):
            self._others += [
                f"{key!r}: a key of its results that is no string"
                for key in results
                if not isinstance(key, str)
            ]
            self.names = tuple(results)
            results = tuple(results.values())
        self.results = self._arguments(results)

    def _arguments(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self._value(one) for one in arguments)

    def _value(self, argument: Any) -> Any:
        if isinstance(argument, fx.Node):
            return self._values[argument]
        if isinstance(argument, list | tuple):
            # What torch.fx keeps lists as is a list of its own.
            return [self._value(one) for one in argument]
        return argument


def _name_of(target: object) -> str | None:
    for name, function in _FUNCTIONS.items():
        if target is function:
            return name
    if isinstance(target, torch._ops.OpOverload) and resolve(target._schema.name) is target:
        return target._schema.name
    return None


def _kind_of_function(live: object) -> str:
    assert isinstance(live, _C.LiveNode)
    node: object = live.node
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return "function of Python"
    return "change of a view in place" if live.name.endswith("CopySlices") else "function of C++"
