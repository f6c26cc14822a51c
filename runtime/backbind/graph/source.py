"""A traced backward as the text of a Python module that runs without the graph."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from backbind import _C
from backbind.graph.plain_graph import PlainGraph, Record, Reference

_HEADER = '''\
"""A backward that backbind.trace took from autograd.

Made with backbind {backbind} and torch {torch}. `backward` takes what the forward saved, by name, and the gradient of
each output (None where it may be left out). Who has the graph, or the file that backbind.save wrote, has these tensors:

    saved = dict(backbind.load("graph.safetensors").named_buffers())
"""

import torch
from backbind.graph.traced_backward import check_gradients, check_used  # which brings the operators

ops = torch.ops.backbind

# What the forward saved: {counted}.
SAVED = ({names})


@torch.no_grad()
def backward(saved{parameters}):
    """{returns}"""
    check_gradients({gradients})
'''

_CALLED = {"aten::clone": "torch.ops.aten.clone.default", "complex": "complex"}
_WIDTH = 110


def print_source(graph: PlainGraph) -> str:
    """The text of the module, the same for the same graph."""
    from backbind import __version__

    gradients = [one.name for one in graph.records if one.kind == "gradient"]
    constants = "".join(
        f"\n    {_string(name)},  # {_described(one)}" for name, one in graph.constants.items()
    )
    head = _HEADER.format(
        backbind=__version__,
        torch=torch.__version__,
        counted="1 tensor" if len(graph.constants) == 1 else f"{len(graph.constants)} tensors",
        names=f"{constants}\n" if constants else "",
        parameters="".join(f", {name}=None" for name in gradients),
        returns="A dict of gradients." if graph.names is not None else "A tuple of gradients.",
        gradients=_tuple(gradients),
    )
    body = [*_statements(graph), *_return(graph)]
    return head + textwrap.indent("\n".join(body), "    ") + "\n"


def _described(tensor: torch.Tensor) -> str:
    """What a comment says of a constant."""
    if _C.is_wrapped_number(tensor):
        return "a number, which does not decide about dtypes"
    kind = str(tensor.dtype).removeprefix("torch.")
    layout = "" if tensor.layout is torch.strided else f", {str(tensor.layout).removeprefix('torch.')}"
    device = "" if tensor.device.type == "cpu" else f", {tensor.device}"
    return f"{kind} {list(tensor.shape)}{layout}{device}"


def _statements(graph: PlainGraph) -> Iterator[str]:
    """The calls in their order; what nobody takes any more is let go of, as the engine does."""
    last_use = {
        name: position for position, one in enumerate(graph.records) for name in _names(one.arguments)
    }
    returned = {one.name for one in graph.results if one is not None}
    constants = {one.name: one.target for one in graph.records if one.kind == "constant"}
    of_calls = {one.name for one in graph.records if one.kind == "call"}
    node = None
    for position, record in enumerate(graph.records):
        if record.kind != "call":
            continue
        if record.node != node and record.node is not None:
            node = record.node
            yield f"# {node}"
        yield f"{record.name} = {_call(record, constants)}"
        used = dict.fromkeys((record.name, *_names(record.arguments)))
        over = [
            name
            for name in used
            if name in of_calls and name not in returned and last_use.get(name, position) == position
        ]
        if over:
            yield f"del {', '.join(over)}"


def _call(record: Record, constants: Mapping[str, str]) -> str:
    if record.target == "getitem":
        return f"{_text(record.arguments[0], constants)}[{record.arguments[1]}]"
    called = _CALLED.get(record.target, f"ops.{record.target.removeprefix('backbind::')}")
    arguments = [_text(one, constants) for one in record.arguments]
    line = f"{called}({', '.join(arguments)})"
    if len(record.name) + len(line) + 7 <= _WIDTH:
        return line
    return "\n".join([f"{called}(", *(f"    {one}," for one in arguments), ")"])


def _return(graph: PlainGraph) -> Iterator[str]:
    constants = {one.name: one.target for one in graph.records if one.kind == "constant"}
    values = [_text(one, constants) for one in graph.results]
    if graph.names is None:
        yield f"gradients = {_tuple(values)}"
    else:
        items = (f"    {_string(name)}: {one}," for name, one in zip(graph.names, values, strict=True))
        yield "\n".join(["gradients = {", *items, "}"])
    if not graph.allow_unused:
        yield "check_used(gradients)" if graph.names is None else "check_used(gradients.values())"
    yield "return gradients"


def _names(value: object) -> Iterator[str]:
    """What a value refers to."""
    if isinstance(value, Reference):
        yield value.name
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _names(one)


def _text(value: Any, constants: Mapping[str, str]) -> str:
    """A value as an expression."""
    match value:
        case Reference(name):
            return f"saved[{_string(constants[name])}]" if name in constants else name
        case list() | tuple():
            return f"[{', '.join(_text(one, constants) for one in value)}]"
        case float() if value - value != 0:
            return f'float("{value}")'
        case complex():
            return f"complex({_text(value.real, constants)}, {_text(value.imag, constants)})"
        case torch.device():
            return f'torch.device("{value}")'
        case str():
            return _string(value)
    # Names of dtypes and layouts are what torch calls them; the rest has literals.
    return str(value) if isinstance(value, torch.dtype | torch.layout) else repr(value)


def _tuple(items: Sequence[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _string(text: str) -> str:
    """A literal in double quotes, where it needs no escapes."""
    is_plain = text.isascii() and text.isprintable() and not set(text) & set('"\\')
    return f'"{text}"' if is_plain else repr(text)
