"""Calls of operators whose lists hold objects that run code while they are converted, each in a process of its own.

``python -m tests.ops.changing_arguments`` prints how each call ended as JSON, by its name. Here too is what each call
should end with.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import backbind
import torch
from backbind._operator import FunctionalOperator

REST = 1000
"""Elements behind the one that runs code: enough that the memory of a list that is cleared goes to others."""

Action = Callable[[list[Any]], object]


@dataclass(frozen=True)
class ListArgument:
    """A list argument of an operator."""

    node: str
    name: str
    element: object
    """A good element."""
    expected: str
    takes_integers: bool

    def call(self, value: object) -> list[Any]:
        """What the operator makes of its saved values, or how it refuses them."""
        operator: Any = backbind.ops.get(self.node)
        arguments: list[Any] = [_plain(one.schema_type) for one in operator.saved]
        grads: Any = [torch.ones(1)] * len(operator.outputs)
        mask: Any = [True] * len(operator.inputs)
        if self.name == "grads":
            grads = value
        elif self.name == "needs_input_grad":
            mask = value
        else:
            arguments[self.position(operator)] = value
        converted = operator._convert(grads, mask, *arguments)
        if self.name in ("grads", "needs_input_grad"):
            return []
        result: list[Any] = converted[self.position(operator)]
        return result

    def position(self, operator: FunctionalOperator) -> int:
        return [one.name for one in operator.saved].index(self.name)


def _plain(schema_type: str) -> object:
    values: Mapping[str, object] = {
        "Tensor?": None,
        "bool": True,
        "int": 1,
        "SymInt": 1,
        "ScalarType": torch.float64,
        "Scalar": 1,
        "float": 1.0,
    }
    return values.get(schema_type, [] if schema_type.endswith("[]") else None)


LISTS = {
    "grads": ListArgument(
        "TanhBackward0", "grads", torch.ones(1), "Sequence[Tensor | None]", takes_integers=False
    ),
    "needs_input_grad": ListArgument(
        "TanhBackward0", "needs_input_grad", True, "Sequence[bool]", takes_integers=False
    ),
    "Tensor[]": ListArgument(
        "ForeachAbsBackward0", "self", torch.ones(1), "Sequence[Tensor]", takes_integers=False
    ),
    "Tensor?[]": ListArgument(
        "IndexBackward0", "indices", None, "Sequence[Tensor | None]", takes_integers=False
    ),
    "int[]": ListArgument("AmaxBackward0", "dim", 7, "Sequence[int]", takes_integers=True),
    "int[]?": ListArgument("SumBackward1", "dim", 7, "Sequence[int] | None", takes_integers=True),
    "SymInt[]": ListArgument("ViewBackward0", "self_sym_sizes", 7, "Sequence[int]", takes_integers=True),
    "SymInt[]?": ListArgument(
        "ConvolutionBackward0", "bias_sym_sizes_opt", 7, "Sequence[int] | None", takes_integers=True
    ),
    "Scalar[]": ListArgument(
        "ForeachMulBackward1ScalarList",
        "scalars",
        7.5,
        "Sequence[int | float | complex | bool]",
        takes_integers=True,
    ),
    "ScalarType[]": ListArgument(
        "CatBackward0",
        "tensors_args_scalartypes",
        torch.float64,
        "Sequence[torch.dtype]",
        takes_integers=False,
    ),
}


def _replace(items: list[Any]) -> None:
    items[:] = [object() for _ in items]


def _divide(_items: list[Any]) -> None:
    raise ZeroDivisionError("of the element")


ACTIONS: Mapping[str, Action] = {
    "clears it": lambda items: items.clear(),
    "extends it": lambda items: items.extend([0] * 10 * REST),
    "replaces its elements": _replace,
    "deletes itself": lambda items: items.pop(0),
    "raises": _divide,
    "returns": lambda _items: None,
}


def _reuse_memory() -> list[bytearray]:
    return [bytearray(8 * REST) for _ in range(50)]


def by_index(action: Action, items: list[Any]) -> object:
    """An element that acts when it is asked for an integer."""

    class Element:
        def __index__(self) -> int:
            action(items)
            _reuse_memory()
            return 5

    return Element()


def by_look_up(action: Action, items: list[Any]) -> object:
    """An element that acts when its class is asked for an attribute."""

    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            action(items)
            _reuse_memory()
            return super().__getattribute__(name)

    class Element(metaclass=Meta):
        pass

    return Element()


def by_class(action: Action, items: list[Any]) -> object:
    """An element that acts when it is asked what it is, and says that it is a tensor."""

    class Element:
        @property
        def __class__(self) -> type:
            action(items)
            _reuse_memory()
            return torch.Tensor

        @__class__.setter
        def __class__(self, value: type) -> None:
            raise AttributeError

    return Element()


WAYS: Mapping[str, Callable[[Action, list[Any]], object]] = {
    "index": by_index,
    "look-up": by_look_up,
    "class": by_class,
}


def names() -> Iterator[tuple[str, str, str]]:
    for kind in LISTS:
        for way in WAYS:
            for action in ACTIONS:
                yield kind, way, action


def run(kind: str, way: str, action: str) -> str:
    argument = LISTS[kind]
    items: list[Any] = []
    items += [
        WAYS[way](ACTIONS[action], items),
        *[argument.element] * (0 if kind == "needs_input_grad" else REST),
    ]
    try:
        return repr(argument.call(items))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def expected(kind: str, way: str, action: str) -> str:
    """How the call ends: as if the list had not changed."""
    argument = LISTS[kind]
    if argument.takes_integers and way == "index":
        if action == "raises":
            return "ZeroDivisionError: of the element"
        return repr([5, *[argument.element] * REST])
    return (
        f"TypeError: {argument.node}() argument '{argument.name}': expected {argument.expected}, got Element at "
        "position 0"
    )


def in_a_process(call: Callable[[], str]) -> str:
    """What the call says, or the signal that ended it."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(write_end, "w") as out:
            out.write(call())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        said = answer.read()
    _, status = os.waitpid(child, 0)
    return said if status == 0 else f"the process ended with {os.waitstatus_to_exitcode(status)}"


def main() -> int:
    torch.set_num_threads(1)
    endings = {" ".join(name): in_a_process(lambda name=name: run(*name)) for name in names()}  # type: ignore[misc]
    json.dump(endings, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
