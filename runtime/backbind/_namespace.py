"""What makes the module ``backbind.ops`` a container of its operators."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import ModuleType

from backbind import _C
from backbind._operator import FunctionalOperator, describe_operators

_OPERATORS: dict[str, _C.Operator] = {}
"""All operators by name; filled once, when ``backbind.ops`` is imported, because operators are one per process."""


def load_operators() -> Mapping[str, _C.Operator]:
    """Every operator by name, in order of names."""
    if not _OPERATORS:
        describe_operators()
        _OPERATORS.update((operator.name, operator) for operator in _C.make_operators())
    return _OPERATORS


def get(name: str) -> FunctionalOperator:
    """The operator of the node called ``name``.

    Raises:
        KeyError: there is none; the message has the nearest name.
    """
    operator = _OPERATORS.get(name)
    if operator is None:
        # str(): untyped callers may ask for anything, and should read the same message.
        raise KeyError(f"no operator for a node called {name!r}{suggestion(str(name))}")
    return operator


def for_node(node: object) -> FunctionalOperator:
    """The operator of a live node, as in ``for_node(tensor.grad_fn)``.

    Raises:
        TypeError: ``node`` is not an autograd node.
        LookupError: no entry of derivatives.yaml made this node (a Python function, an accumulator ...).
    """
    return _OPERATORS[binding_name(node)]


def pack(node: object) -> tuple[object, ...]:
    """``(needs_input_grad, *saved)`` of a live node: ``for_node(node)(grads, *pack(node))`` equals running the node.

    Saved tensors are unpacked as the engine would do it.

    Raises:
        TypeError: ``node`` is not an autograd node.
        LookupError: no entry of derivatives.yaml made this node (a Python function, an accumulator ...).
        RuntimeError: a saved tensor was released, or changed in place; the message is eager's.
    """
    binding_name(node)
    packed = _C.pack(node)
    assert packed is not None  # a node with a binding packs or raises
    return packed


def binding_name(node: object) -> str:
    """Name of the binding of a live node. Raises as `for_node` does."""
    name = _C.binding_name(node)
    if name is None:
        described = node.name() if hasattr(node, "name") else type(node).__name__
        raise LookupError(
            f"node '{described}' has no functional operator: it was not made by an entry of derivatives.yaml; "
            "backbind.ops lists the nodes that have one"
        )
    return name


def suggestion(name: str) -> str:
    """``, did you mean 'MulBackward0'?`` for the nearest name, or nothing."""
    near = _C.nearest_name(name, list(_OPERATORS))
    return "" if near is None else f", did you mean {near!r}?"


class _Namespace(ModuleType):
    """A module that is a container of operators."""

    def __len__(self) -> int:
        return len(_OPERATORS)

    def __iter__(self) -> Iterator[FunctionalOperator]:
        return iter(_OPERATORS.values())

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            return item in _OPERATORS
        return any(item is operator for operator in _OPERATORS.values())

    def __dir__(self) -> list[str]:
        return sorted([*_OPERATORS, "for_node", "get"])

    def __getattr__(self, name: str) -> object:
        raise AttributeError(f"module 'backbind.ops' has no operator {name!r}{suggestion(name)}")


def become_namespace(module: str) -> None:
    """Turn a module into a container of the operators."""
    sys.modules[module].__class__ = _Namespace
