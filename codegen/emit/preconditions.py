"""Prints the preconditions of a node as C++ statements, which stand before its functional backward."""

from __future__ import annotations

from .. import names
from ..model.node import NodeSpec, SavedValue
from ..model.precondition import (
    GradientCount,
    GradientRank,
    Gradients,
    Length,
    Literal,
    MissingTensor,
    NamedGradient,
    NamedTensor,
    NamedValue,
    Operand,
    Precondition,
    Product,
    Rank,
    SymSizes,
    TensorList,
    Value,
)


def check_statements(node: NodeSpec) -> tuple[str, ...]:
    """The checks of one node in their order; ``check`` is a Preconditions of the node."""
    return tuple(_statement(node, one) for one in node.preconditions)


def _statement(node: NodeSpec, precondition: Precondition) -> str:
    """The call as a statement, made only where every saved value in it is read."""
    saved = {one.name: one for one in node.saved}
    operands = ", ".join(_print(operand, saved) for operand in precondition.operands)
    call = f"check.{precondition.check}({operands});"
    conditions = dict.fromkeys(_read_condition(node, saved[name]) for name in precondition.reads)
    needed = [condition for condition in conditions if condition]
    if not needed:
        return call
    parts = [f"({one})" if "||" in one and len(needed) > 1 else one for one in needed]
    return f"if ({' && '.join(parts)}) {call}"


def _read_condition(node: NodeSpec, saved: SavedValue) -> str:
    """When a formula that reads ``saved`` is evaluated; empty for the length of a list, which is always kept."""
    if saved.type.key == "list_size":
        return ""
    return " || ".join(f"{names.NEEDS_INPUT_GRAD}[{position}]" for position in node.readers(saved))


def _print(operand: Operand, saved: dict[str, SavedValue]) -> str:
    """An operand as one argument of C++, or as two where it goes with its name."""
    match operand:
        case Literal(text):
            return text
        case Value(name):
            return saved[name].variable
        case NamedValue(name):
            return f'"{name}", {saved[name].variable}'
        case NamedTensor(name):
            return f'{{"{name}", {saved[name].variable}}}'
        case Length(name):
            return f'"{saved[name].arguments[-1].name}", {saved[name].variable}.size()'
        case Rank(name) if saved[name].type.is_tensor:
            return f"{saved[name].variable}.dim()"
        case Rank(name):
            return f"static_cast<int64_t>({saved[name].variable}.size())"
        case SymSizes(name) if saved[name].type.key == "integer_list":
            return f"c10::fromIntArrayRefSlow({saved[name].variable})"
        case SymSizes(name):
            return saved[name].variable
        case Product(factors):
            return " * ".join(_print(factor, saved) for factor in factors)
        case Gradients():
            return names.GRADIENTS
        case GradientCount():
            return f'"{names.GRADIENTS}", {names.GRADIENTS}.size()'
        case NamedGradient(position):
            return f'{{"{names.GRADIENTS}", {names.GRADIENTS}[{position}]}}'
        case GradientRank(position):
            return f"gradient_rank({names.GRADIENTS}, {position})"
        case MissingTensor(name):
            return f'{{"{name}", Tensor()}}'
        case TensorList(items):
            return f"{{{', '.join(_print(item, saved) for item in items)}}}"
    raise NotImplementedError(f"an operand of the kind {type(operand).__name__}")
