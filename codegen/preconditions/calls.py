"""One call of a check, ``pooled(2, self, result1)``, over the saved values of one node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

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
from ..parse.brackets import FormulaSyntaxError
from ..parse.expression import Binary, Braces, Call, Expression, Index, Name, Unary
from ..parse.expression import Literal as WrittenLiteral
from ..parse.expression_parser import parse_expression
from ..parse.nearest import did_you_mean, quoted
from ..parse.report import Report
from ..parse.span import SourceText
from .checks import CHECKS, Check, Kind

RANK = "rank"
MISSING = "missing"

_SIZE_LISTS = ("integer_list", "sym_int_list")
"""Rows of saved values that may be the sizes of a tensor."""


class _RefusedError(Exception):
    """What is wrong with a part of a call."""

    def __init__(self, part: Expression, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.part = part
        self.message = message
        self.hint = hint


def read_call(text: SourceText, node: NodeSpec, report: Report) -> Precondition | None:
    """The precondition that ``text`` is for ``node``; None after a message about what is wrong with it."""
    try:
        return _Reader(node).call(parse_expression(text.text))
    except FormulaSyntaxError as error:
        report.error(text.part(error.start, error.end), error.message, error.hint)
    except _RefusedError as error:
        report.error(text.part(error.part.start, error.part.end), error.message, error.hint)
    return None


@dataclass(frozen=True)
class _Reader:
    """Reads the arguments of calls over one node; whatever it cannot use raises _RefusedError."""

    node: NodeSpec

    def call(self, written: Expression) -> Precondition:
        if not isinstance(written, Call) or not isinstance(written.function, Name):
            raise _RefusedError(
                written, "expected the call of a check", "for example 'pooled(2, self, result1)'"
            )
        name = written.function.qualified
        check = CHECKS.get(name)
        if check is None:
            hint = did_you_mean(name, CHECKS) or "the checks are listed in codegen/preconditions/checks.py"
            raise _RefusedError(written.function, f"there is no check '{name}'", hint)
        if len(written.arguments) != len(check.parameters):
            raise _RefusedError(written, _wrong_count(name, check, len(written.arguments)))
        operands = [
            self.operand(argument, kind)
            for argument, kind in zip(written.arguments, check.parameters, strict=True)
        ]
        return Precondition(name, (Gradients(), *operands) if check.takes_gradients else tuple(operands))

    def operand(self, written: Expression, kind: Kind) -> Operand:
        match kind:
            case Kind.TENSOR:
                return self.tensor(written)
            case Kind.TENSORS:
                return self.tensors(written)
            case Kind.VALUE:
                return self.value(written)
            case Kind.POSITION:
                return Literal(str(self.position(written)))
            case Kind.NAMED_VALUE:
                return NamedValue(self.saved(written, kind, is_tensor=False).name)
            case Kind.LENGTH:
                return self.length(written)
            case Kind.SIZES:
                return SymSizes(self.sizes(written, kind).name)
            case Kind.RANK:
                return self.rank(written)
            case Kind.TENSOR_OR_SIZES:
                if self.is_saved_list(written):
                    return NamedValue(self.sizes(written, kind).name)
                return self.tensor(written)

    def tensor(self, written: Expression) -> NamedTensor | NamedGradient | MissingTensor:
        if _is_gradient(written):
            return NamedGradient(self.position(written.position))
        if isinstance(written, Call) and _is_call_of(written, MISSING):
            return self.missing(written)
        return NamedTensor(self.saved(written, Kind.TENSOR, is_tensor=True).name)

    def missing(self, written: Call) -> MissingTensor:
        if len(written.arguments) != 1:
            raise _RefusedError(written, f"'{MISSING}' takes the name of one tensor")
        (argument,) = written.arguments
        if not isinstance(argument, Name) or argument.plain is None:
            raise _RefusedError(argument, "expected the name of a tensor that the node does not save")
        if any(one.name == argument.plain for one in self.node.saved):
            raise _RefusedError(
                argument, f"'{self.node.operator}' does save '{argument.plain}'", "name it as it is"
            )
        return MissingTensor(argument.plain)

    def tensors(self, written: Expression) -> TensorList:
        if not isinstance(written, Braces) or written.type is not None:
            raise _RefusedError(written, f"expected {Kind.TENSORS.value}", "for example '{result1, result2}'")
        return TensorList(tuple(self.tensor(item) for item in written.items))

    def value(self, written: Expression) -> Value | Literal | Product:
        if isinstance(written, Binary) and written.operator == "*":
            left, right = self.value(written.left), self.value(written.right)
            factors = (factor for one in (left, right) for factor in _factors(one))
            return Product(tuple(factors))
        number = _number(written)
        if number is not None:
            return Literal(number)
        return Value(self.saved(written, Kind.VALUE).name)

    def position(self, written: Expression) -> int:
        number = _number(written)
        if number is None or not number.isdecimal():
            raise _RefusedError(written, f"expected {Kind.POSITION.value}, a number")
        count = self.node.gradient_count
        if count is not None and int(number) >= count:
            has = "one gradient" if count == 1 else f"{count} gradients"
            raise _RefusedError(written, f"'{self.node.operator}' has {has}, counted from 0")
        return int(number)

    def length(self, written: Expression) -> Length | GradientCount:
        if isinstance(written, Name) and written.plain == names.GRADIENTS:
            return GradientCount()
        saved = self.saved(written, Kind.LENGTH)
        if not saved.has_length:
            raise _RefusedError(written, f"expected {Kind.LENGTH.value}; '{saved.name}' is none")
        return Length(saved.name)

    def rank(self, written: Expression) -> Value | Rank | GradientRank:
        if not isinstance(written, Call) or not _is_call_of(written, RANK):
            return Value(self.saved(written, Kind.RANK, is_tensor=False).name)
        if len(written.arguments) != 1:
            raise _RefusedError(written, f"'{RANK}' takes one tensor, or its sizes")
        (argument,) = written.arguments
        if _is_gradient(argument):
            return GradientRank(self.position(argument.position))
        if self.is_saved_list(argument):
            return Rank(self.sizes(argument, Kind.TENSOR_OR_SIZES).name)
        return Rank(self.saved(argument, Kind.TENSOR_OR_SIZES, is_tensor=True).name)

    def sizes(self, written: Expression, kind: Kind) -> SavedValue:
        saved = self.saved(written, kind)
        if saved.type.key not in _SIZE_LISTS:
            raise _RefusedError(written, f"expected {kind.value}; '{saved.name}' is another value")
        return saved

    def is_saved_list(self, written: Expression) -> bool:
        return isinstance(written, Name) and any(
            one.name == written.plain and one.type.key in _SIZE_LISTS for one in self.node.saved
        )

    def saved(self, written: Expression, kind: Kind, is_tensor: bool | None = None) -> SavedValue:
        """The saved value that is named, which must be a tensor, or must not be, where that is said."""
        if not isinstance(written, Name) or written.plain is None:
            raise _RefusedError(written, f"expected {kind.value}", describe_saved(self.node))
        if written.plain == names.GRADIENTS:
            hint = f"name one of them: '{names.GRADIENTS}[0]'"
            raise _RefusedError(
                written, f"expected {kind.value}; '{names.GRADIENTS}' are all gradients", hint
            )
        found = next((one for one in self.node.saved if one.name == written.plain), None)
        if found is None:
            hint = did_you_mean(written.plain, [one.name for one in self.node.saved]) or describe_saved(
                self.node
            )
            raise _RefusedError(written, f"'{self.node.operator}' saves no '{written.plain}'", hint)
        if is_tensor is not None and (found.type.key == "tensor") != is_tensor:
            what = "no tensor" if is_tensor else "a tensor"
            raise _RefusedError(written, f"expected {kind.value}; '{found.name}' is {what}")
        return found


def describe_saved(node: NodeSpec) -> str:
    """For a hint: what the node has."""
    return f"'{node.operator}' saves {quoted(one.name for one in node.saved) or 'nothing'}"


def _factors(one: Value | Literal | Product) -> tuple[Value | Literal, ...]:
    return one.factors if isinstance(one, Product) else (one,)


def _is_gradient(written: Expression) -> TypeGuard[Index]:
    """Whether it is ``grads[...]``."""
    return (
        isinstance(written, Index)
        and isinstance(written.sequence, Name)
        and written.sequence.plain == names.GRADIENTS
    )


def _number(written: Expression) -> str | None:
    """A number or a truth value as written, ``-1``."""
    if isinstance(written, Unary) and written.operator == "-":
        number = _number(written.operand)
        return None if number is None else f"-{number}"
    if isinstance(written, WrittenLiteral) and (
        written.text[0].isdigit() or written.text in ("true", "false")
    ):
        return written.text
    return None


def _is_call_of(written: Call, name: str) -> bool:
    return isinstance(written.function, Name) and written.function.plain == name


def _wrong_count(name: str, check: Check, given: int) -> str:
    count = len(check.parameters)
    taken = ", ".join(one.value for one in check.parameters)
    return f"'{name}' takes {count} argument{'' if count == 1 else 's'}, not {given}: {taken}"
