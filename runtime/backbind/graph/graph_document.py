"""The structure of a traced backward as JSON: format 1."""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from backbind.graph.fields import Fields, shown, typed
from backbind.graph.file_errors import GraphFileError
from backbind.graph.plain_graph import PlainGraph, Record, Reference, resolve
from backbind.graph.schema_check import check_arguments, result_kind
from backbind.graph.stored_tensors import Pieces, restore
from backbind.graph.stored_values import decode, encode
from backbind.graph.traced_backward import TracedBackward

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NODE = re.compile(r"[A-Za-z0-9_:<>, *&()\[\]-]{1,500}", re.ASCII)


def write_document(graph: PlainGraph, constants: list[dict[str, Any]]) -> dict[str, Any]:
    """The structure, with the descriptions of its constants."""
    from backbind import __version__

    called = sorted({one.target for one in graph.records if one.kind == "call"})
    return {
        "backbind": __version__,
        "torch": torch.__version__,
        "operators": {target: _schema(target) for target in called},
        "allow_unused": graph.allow_unused,
        "constants": constants,
        "values": [_write_record(record) for record in graph.records],
        "names": None if graph.names is None else list(graph.names),
        "results": encode(graph.results),
    }


def _schema(target: str) -> str:
    """The text by which an operator is known to be the same in another release; a function of Python is."""
    return str(getattr(resolve(target), "_schema", target))


def _write_record(record: Record) -> dict[str, Any]:
    written: dict[str, Any] = {"name": record.name, "kind": record.kind}
    if record.kind != "gradient":
        written["target"] = record.target
    if record.kind == "call":
        written["arguments"] = encode(record.arguments)
        if record.node is not None:
            written["node"] = record.node
        if record.edge is not None:
            written["edge"] = record.edge
    return written


def read_document(document: object, pieces: Mapping[str, torch.Tensor]) -> TracedBackward:
    """The graph of a structure and the memory of its constants.

    Raises:
        GraphFileError: this is no structure of a graph, or one for other operators.
    """
    keys = ("backbind", "torch", "operators", "allow_unused", "constants", "values", "names", "results")
    fields = Fields(document, "the graph", keys)
    release = fields.get("torch", str)
    fields.get("backbind", str)
    operators = {
        target: _operator(target, schema, release) for target, schema in fields.get("operators", dict).items()
    }
    builder = _Builder(operators, _constants(fields.get("constants", list), Pieces(pieces)))
    for value in fields.get("values", list):
        builder.add(value)
    return builder.finish(fields)


def _operator(target: str, schema: object, release: str) -> Callable[..., Any]:
    found = resolve(target)
    name = shown(target)
    if found is None:
        raise GraphFileError(
            f"it calls {name}, which torch {torch.__version__} has no operator for; it was saved with torch "
            f"{shown(release)}"
        )
    if typed(schema, str, f"the schema of {name}") != _schema(target):
        raise GraphFileError(
            f"it calls {name} as torch {shown(release)} has it, whose arguments are others in torch "
            f"{torch.__version__}"
        )
    return found


def _constants(descriptions: list[Any], pieces: Pieces) -> dict[str, torch.Tensor]:
    constants: dict[str, torch.Tensor] = {}
    for one in descriptions:
        fields = Fields(one, "a constant", ("name", "tensor"))
        name = _name(fields.get("name", str), "a constant")
        if name in constants:
            raise GraphFileError(f"the constant {shown(name)} is there twice")
        if name in _taken():
            raise GraphFileError(f"{shown(name)} is no name for a constant: modules use it")
        constants[name] = restore(fields.any("tensor"), f"the constant {shown(name)}", pieces)
    pieces.check_all_used()
    return constants


@functools.cache
def _taken() -> frozenset[str]:
    """Names that a graph module has already."""
    return frozenset(dir(TracedBackward(torch.nn.Module(), fx.Graph(), "TracedBackward")))


def _name(name: str, what: str) -> str:
    """A name that is safe in the code that torch.fx makes of a graph."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name == "self":
        raise GraphFileError(f"{shown(name)} is no name for {what}")
    return name


class _Builder:
    """Builds the graph, value by value."""

    def __init__(
        self, operators: Mapping[str, Callable[..., Any]], constants: Mapping[str, torch.Tensor]
    ) -> None:
        self._graph = fx.Graph()
        self._operators = operators
        self._constants = constants
        self._nodes: dict[str, fx.Node] = {}
        self._kinds: dict[str, str] = {}
        self._used: set[str] = set()

    def add(self, value: object) -> None:
        optional = ("target", "arguments", "node", "edge")
        fields = Fields(value, "a value", ("name", "kind"), optional)
        name = _name(fields.get("name", str), "a value")
        kind = fields.get("kind", str)
        match kind:
            case "gradient":
                Fields(value, f"the gradient {shown(name)}", ("name", "kind"))
                if self._nodes and next(reversed(self._nodes.values())).op != "placeholder":
                    raise GraphFileError(f"the gradient {shown(name)} comes after other values")
                node = self._graph.placeholder(name, default_value=None)
            case "constant":
                fields = Fields(value, f"the value {shown(name)}", ("name", "kind", "target"))
                target = fields.get("target", str)
                if target not in self._constants:
                    raise GraphFileError(f"there is no constant {shown(target)}")
                self._used.add(target)
                node = self._graph.create_node("get_attr", target, name=name)
            case "call":
                required = ("name", "kind", "target", "arguments")
                node = self._call(Fields(value, f"the call {shown(name)}", required, ("node", "edge")), name)
            case _:
                raise GraphFileError(f"the value {shown(name)} is of the unknown kind {shown(kind)}")
        if node.name != name:
            # torch.fx has found that it would not be alone with it, or that Python needs it.
            raise GraphFileError(f"the name {shown(name)} is there twice, or is one that a graph needs")
        self._nodes[name] = node
        self._kinds.setdefault(name, "tensor")

    def _call(self, fields: Fields, name: str) -> fx.Node:
        what = f"the call {shown(name)}"
        target = fields.get("target", str)
        if target not in self._operators:
            raise GraphFileError(
                f"{what} is one of {shown(target)}, which is not among the operators of the graph"
            )
        self._used.add(target)
        function = self._operators[target]
        arguments = [decode(one) for one in fields.get("arguments", list)]
        check_arguments(function, arguments, self._kinds, what)
        node = self._graph.create_node(
            "call_function", function, tuple(self._linked(one) for one in arguments), name=name
        )
        self._kinds[name] = result_kind(function)
        if (autograd_node := fields.optional("node", str)) is not None:
            if not _NODE.fullmatch(autograd_node):
                raise GraphFileError(f"{what} belongs to {shown(autograd_node)}, which is no name of a node")
            node.meta["autograd_node"] = autograd_node
        if (edge := fields.optional("edge", int)) is not None:
            node.meta["edge"] = edge
        return node

    def _linked(self, argument: Any) -> Any:
        if isinstance(argument, Reference):
            return self._nodes[argument.name]
        if isinstance(argument, list):
            return [self._linked(one) for one in argument]
        return argument

    def finish(self, fields: Fields) -> TracedBackward:
        for name in (*self._operators, *self._constants):
            if name not in self._used:
                raise GraphFileError(f"{shown(name)} is declared and not used")
        results = [decode(one) for one in fields.get("results", list)]
        for one in results:
            if one is not None and not (isinstance(one, Reference) and self._kinds.get(one.name) == "tensor"):
                raise GraphFileError(f"a result is {shown(one)}, which is no gradient")
        linked = tuple(self._linked(one) for one in results)
        names = _names(fields, len(results))
        self._graph.output(linked if names is None else dict(zip(names, linked, strict=True)))
        self._graph.lint()
        root = torch.nn.Module()
        for name, tensor in self._constants.items():
            root.register_buffer(name, tensor)
        module = TracedBackward(root, self._graph, "TracedBackward")
        module.watch((), allow_unused=fields.get("allow_unused", bool))
        return module


def _names(fields: Fields, count: int) -> list[str] | None:
    if fields.any("names") is None:
        return None
    names = [typed(one, str, "the name of a result") for one in fields.get("names", list)]
    if len(names) != count or len(set(names)) != count:
        raise GraphFileError(f"{count} results have {len(set(names))} names")
    return names
