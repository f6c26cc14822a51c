"""Which saved inputs a formula asks whether they require grad.

A live node's do where their gradients are needed; an operator gives them that state (csrc/nodes/needed_inputs.h).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..parse.expression import Call, Expression, Member, Name, walk
from .node import NodeSpec


def asked_inputs(node: NodeSpec, helpers: Mapping[str, int]) -> Mapping[str, int]:
    """The inputs that formulas ask, each with its place among the inputs.

    ``helpers`` are those that ask an argument, and which one that is.
    """
    positions = {one.name: position for position, one in enumerate(node.inputs)}
    asked = (
        _asked(expression, helpers)
        for formula in node.formulas
        for expression, _, _ in walk(formula.parsed.root)
        if isinstance(expression, Call)
    )
    return {
        name.path[-1]: positions[name.path[-1]]
        for name in asked
        if isinstance(name, Name) and name.path[-1] in positions
    }


def _asked(call: Call, helpers: Mapping[str, int]) -> Expression | None:
    """What the call asks whether it requires grad: its receiver, or the argument of a helper that is known to ask."""
    function = call.function
    if isinstance(function, Member) and function.name == "requires_grad":
        return function.receiver
    if isinstance(function, Name) and function.plain is not None and function.plain in helpers:
        return call.arguments[helpers[function.plain]]
    return None
