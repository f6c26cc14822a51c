"""Checks the arguments of a stored call by the schema of what it calls, before anything is called."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from backbind.graph.fields import shown
from backbind.graph.file_errors import GraphFileError
from backbind.graph.plain_graph import Reference

_LITERALS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "bool": (bool,),
    "float": (float, int),
    "number": (int, float, complex, bool),
    "str": (str,),
    "ScalarType": (torch.dtype,),
    "Layout": (torch.layout,),
    "Device": (torch.device,),
}
"""The types of values that an argument of a schema's type may have."""

_IN_PYTHON: dict[object, tuple[str, ...]] = {
    operator.getitem: ("gradients", "int"),
    complex: ("float", "float"),
}
"""The arguments of functions without a schema; ``gradients`` is what the operator of a node gives."""


def result_kind(function: Callable[..., Any]) -> str:
    """What a call gives: a ``tensor``, the ``gradients`` of a node, or a ``number``."""
    if function is complex:
        return "number"
    if isinstance(function, torch._ops.OpOverload):
        (returned,) = function._schema.returns
        return "gradients" if str(returned.type) == "List[Tensor]" else "tensor"
    return "tensor"


def check_arguments(
    function: Callable[..., Any], arguments: Sequence[Any], kinds: Mapping[str, str], what: str
) -> None:
    """``kinds``: what each earlier value is.

    Raises:
        GraphFileError: an argument is not of the type of its parameter, or names no earlier value.
    """
    types = _parameters(function)
    required = types if not isinstance(function, torch._ops.OpOverload) else _required(function)
    if not len(required) <= len(arguments) <= len(types):
        raise GraphFileError(f"{what} has {len(arguments)} arguments instead of {len(types)}")
    for position, (argument, kind) in enumerate(zip(arguments, types, strict=False)):
        if not _fits(argument, kind, kinds):
            described = (
                f"value {shown(argument.name)}" if isinstance(argument, Reference) else shown(argument)
            )
            raise GraphFileError(f"argument {position} of {what} is {described}, which is no {kind}")
    if function is operator.getitem and arguments[1] < 0:
        raise GraphFileError(f"{what} takes gradient {arguments[1]}, which there is none of")


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    if isinstance(function, torch._ops.OpOverload):
        return tuple(str(one.real_type) for one in function._schema.arguments if not one.kwarg_only)
    return _IN_PYTHON[function]


def _required(function: torch._ops.OpOverload) -> tuple[str, ...]:
    return tuple(
        str(one.real_type)
        for one in function._schema.arguments
        if not one.kwarg_only and not one.has_default_value()
    )


def _fits(argument: Any, kind: str, kinds: Mapping[str, str]) -> bool:
    if kind.startswith("Optional["):
        return argument is None or _fits(argument, kind[len("Optional[") : -1], kinds)
    if kind.startswith("List["):
        item = kind[len("List[") : -1]
        return isinstance(argument, list) and all(_fits(one, item, kinds) for one in argument)
    if isinstance(argument, Reference):
        expected = {"Tensor": "tensor", "gradients": "gradients", "number": "number"}.get(kind)
        return expected is not None and kinds.get(argument.name) == expected
    return type(argument) in _LITERALS.get(kind, ())
