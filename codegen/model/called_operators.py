"""Which operators a formula calls, by name: what is left out beneath autograd's keys are their kernels for these keys.

The names are those without overloads, and may be more than are called: ``-`` stands for every operator that it can be
in C++, and between whole numbers it is none of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..parse.expression import Binary, Call, Expression, Index, Member, Name, Unary, walk
from .library import Library
from .node import Formula

_BINARY: dict[str, tuple[str, ...]] = {
    "+": ("add",),
    "-": ("sub", "empty_like", "fill_", "sub_"),
    "*": ("mul",),
    "/": ("div", "empty_like", "fill_", "div_"),
    "%": ("remainder", "empty_like", "fill_", "remainder_"),
    "&": ("bitwise_and",),
    "|": ("bitwise_or",),
    "^": ("bitwise_xor",),
    "<": ("lt", "gt"),
    "<=": ("le", "ge"),
    ">": ("gt", "lt"),
    ">=": ("ge", "le"),
    "==": ("eq",),
    "!=": ("ne",),
    "&&": (),
    "||": (),
}
"""By the operator of C++; where a number stands on the left, it is made of others."""

_UNARY: dict[str, tuple[str, ...]] = {
    "-": ("neg",),
    "+": (),
    "~": ("bitwise_not",),
    "!": (),
    "*": (),
    "&": (),
}

_RESHAPE = ("reshape", "view", "alias", "clone", "_unsafe_view", "_reshape_alias", "_reshape_copy")
_COMPOSITES: dict[str, tuple[str, ...]] = {
    # Of real tensors, which all are that a step runs its formulas over.
    "conj": (),
    "contiguous": ("clone",),
    "is_complex": (),
    "reshape": _RESHAPE,
    "reshape_as": _RESHAPE,
    "size": (),
    "sym_size": (),
}
"""What operators call that autograd looks into, because they are made of others."""

_METHODS = frozenset(
    [
        "defined",
        "has_value",
        "isComplex",
        "requires_grad",
        "suggest_memory_format",
        "toComplexDouble",
        "toDouble",
        "toFloat",
        "value",
    ]
)
"""Methods of C++ that call no operator."""


def called_operators(formulas: Iterable[Formula], library: Library) -> tuple[str, ...] | None:
    """The operators that formulas call, helpers included, by name; None where that is not known."""
    called: set[str] = set()
    for formula in formulas:
        for expression, _, _ in walk(formula.parsed.root):
            names = _called_at(expression, library)
            if names is None:
                return None
            called.update(names)
    return tuple(sorted(called))


def _called_at(expression: Expression, library: Library) -> tuple[str, ...] | None:
    """What this place calls, without what lies inside."""
    match expression:
        case Unary(operator=operator):
            return _UNARY.get(operator)
        case Binary(operator=operator):
            return _BINARY.get(operator)
        case Index():
            return ("select",)
        case Call(function=Member(name=name)):
            return () if name in _METHODS else _operator(name, library)
        case Call(function=Name() as function):
            return _function(function, library)
        case Call():
            return None
    return ()


def _function(function: Name, library: Library) -> tuple[str, ...] | None:
    name = function.path[-1]
    if function.path[0] == "std" or name[0].isupper() or name == "make_tuple":
        # What makes a value of C++: a list, an optional, a tensor of nothing.
        return ()
    if function.plain is not None and name in library.helpers:
        return library.helpers[name].operators
    return _operator(name, library) if function.plain is not None or function.path[0] == "at" else None


def _operator(name: str, library: Library) -> tuple[str, ...] | None:
    name = name.removesuffix("_symint")
    known = [operator for operator in library.operators.by_name.get(name, ()) if not operator.schema.is_out]
    if not known:
        return None
    if not any(operator.is_composite for operator in known):
        return (name,)
    return (name, *_COMPOSITES[name]) if name in _COMPOSITES else None
