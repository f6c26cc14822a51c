"""The text that documents one operator: the same in docstrings, stubs and the reference."""

from __future__ import annotations

from ..model.library import Library
from ..model.node import Argument, NodeSpec, SavedValue


def documentation(node: NodeSpec, library: Library) -> str:
    """The docstring of an operator, without indentation."""
    parts = [
        f"Backward of {node.operator}{_key(node)} as a pure function of gradients and saved values.",
        f"Forward: {node.forward_schema}",
        _formulas(node),
        _arguments(node),
        _returns(node),
        _origin(node, library),
    ]
    return "\n\n".join(parts)


def describe_argument(saved: SavedValue, argument: Argument) -> str:
    """What an argument is: ``the forward's argument 'other'``, or a part of a saved value."""
    suffix = argument.component.suffix
    if not suffix:
        return saved.meaning
    return f"{suffix.removeprefix('_').replace('_', ' ')} of {saved.meaning}"


def _key(node: NodeSpec) -> str:
    return "" if node.dispatch_key == "Default" else f" for {node.dispatch_key}"


def _formulas(node: NodeSpec) -> str:
    lines = [f"  {', '.join(one.inputs)}: {' '.join(one.written.split())}" for one in node.formulas]
    return "\n".join(["Formulas:", *lines])


def _arguments(node: NodeSpec) -> str:
    lines = [
        f"  grads: {_gradients(node)}",
        f"  needs_input_grad: whether a gradient is wanted for {', '.join(repr(one.name) for one in node.inputs)}",
    ]
    lines += [
        f"  {argument.name} ({argument.component.schema}): {describe_argument(saved, argument)}"
        for saved in node.saved
        for argument in saved.arguments
    ]
    return "\n".join(["Args:", *lines])


def _gradients(node: NodeSpec) -> str:
    names = [f"each element of {one.name!r}" if one.is_list else repr(one.name) for one in node.outputs]
    return f"the gradient of {', '.join(names)}; None where it is undefined"


def _returns(node: NodeSpec) -> str:
    names = [f"each element of {one.name!r}" if one.is_list else repr(one.name) for one in node.inputs]
    return f"Returns:\n  The gradient of {', '.join(names)}; None where it is not wanted or is zero."


def _origin(node: NodeSpec, library: Library) -> str:
    place = f"{library.yaml_name}:{node.line} of {library.name} {library.version}"
    if node.origin == "entry":
        return f"Source: {place}."
    return f"Source: {node.origin} of the entry at {place}."
