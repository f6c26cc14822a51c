"""What a formula may read of a tensor without the tensor being saved: the one table of it.

A formula that reads ``self.sym_sizes()`` needs the sizes alone, so the forward evaluates that and the node keeps the
result. Whatever else a formula does with an argument or a result, the value is saved whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from .. import names
from ..parse.expression import Call, Expression, Literal, Member, Name, Unary
from ..parse.expression_parser import parse_expression

_VARIABLES = re.compile(r"\b[xn]\b")


@dataclass(frozen=True)
class Attribute:
    """One row: a reading of the tensor ``x`` and what is saved for it."""

    written: str
    """As formulas spell it. A parameter ``n`` stands for a number, or for the name of an argument."""
    suffix: str
    """What follows the tensor's name in the name of the saved value; ``{n}`` is the parameter."""
    cpp_type: str
    """The type of the saved value."""
    forward: str | None = None
    """How the forward reads it, where that is not as it is written: ``{x}`` is the tensor."""
    backward: str = "{saved}"
    """What the formula reads instead."""
    of: str = "Tensor"
    """The type of ``x`` in the schema."""
    own_formula_only: bool = False
    """Whether only the formula of the tensor's own gradient may read it."""

    @property
    def member(self) -> str:
        """The method or function that is called: ``sym_sizes``."""
        return _spelling(self).name

    def of_variable(self, name: str, parameter: str = "n") -> str:
        """The reading of a tensor as it is spelt: ``self.sym_size(0)``."""
        return _VARIABLES.sub(lambda found: name if found[0] == "x" else parameter, self.written)


ATTRIBUTES = (
    Attribute("x.sym_sizes()", "sym_sizes", "c10::SymIntArrayRef"),
    Attribute(
        "x->sym_sizes()",
        "sym_sizes_opt",
        "::std::optional<c10::SymIntArrayRef>",
        forward="{x}.has_value() ? std::optional<c10::SymIntArrayRef>({x}->sym_sizes()) : std::nullopt",
        of="Tensor?",
    ),
    Attribute("x.sym_size(n)", "sym_argsize_{n}", "c10::SymInt"),
    Attribute("x.sym_numel()", "sym_numel", "c10::SymInt"),
    Attribute(
        "x.sym_strides()",
        "sym_strides",
        "c10::SymIntArrayRef",
        # A sparse tensor has no strides: the error names the tensor.
        forward='strides_or_error({x}, "{x}")',
        own_formula_only=True,
    ),
    Attribute(
        "x.sym_blocksize()",
        "self_sym_blocksize_opt",
        "::std::optional<c10::SymIntArrayRef>",
        forward="at::sparse_csr::getSymIntBlockSize({x})",
    ),
    Attribute("x.numel()", "numel", "int64_t"),
    Attribute("x.dim()", "dim", "int64_t"),
    Attribute("x.scalar_type()", "scalar_type", "at::ScalarType"),
    Attribute("x.layout()", "layout", "at::Layout"),
    Attribute("x.options()", "options", "at::TensorOptions"),
    Attribute("x.is_conj()", "conjugate", "bool"),
    Attribute("TensorGeometry(x)", "geometry", "at::TensorGeometry"),
    Attribute(
        "zeros_like(x)",
        "info",
        "torch::autograd::generated::TypeAndSize",
        forward="{x}",
        backward="{saved}.zeros()",
    ),
    Attribute("to_args_sizes(x)", "args_sizes", "::std::vector<::std::vector<int64_t>>", of="Tensor[]"),
    Attribute(
        "to_args_sizes_symint(x)",
        "args_sizes_symint",
        "::std::vector<::std::vector<c10::SymInt>>",
        of="Tensor[]",
    ),
    Attribute("to_args_scalartypes(x)", "args_scalartypes", "::std::vector<at::ScalarType>", of="Tensor[]"),
)


class Reading(NamedTuple):
    """A call in a formula that reads an attribute of a variable."""

    attribute: Attribute
    tensor: Name
    parameter: str
    """The number or name in the brackets, ``-1``; empty for rows without a parameter."""

    @property
    def forward_expression(self) -> str:
        """How the forward evaluates it."""
        name, forward = self.tensor.path[0], self.attribute.forward
        return self.attribute.of_variable(name, self.parameter) if forward is None else forward.format(x=name)

    @property
    def saved_name(self) -> str:
        """``self_sym_argsize_minus_1``"""
        parameter = self.parameter.replace("-", "minus_")
        return names.saved_attribute(self.tensor.path[0], self.attribute.suffix.format(n=parameter))


class _Spelling(NamedTuple):
    """What tells the rows apart."""

    name: str
    """Of the method or function."""
    access: str
    """``.`` or ``->``; empty for a function."""
    parameters: int


def find_reading(expression: Expression) -> Reading | None:
    """The attribute that ``expression`` reads, if it is written as a row says."""
    if not isinstance(expression, Call):
        return None
    tensor, spelling = _decomposed(expression)
    attribute = _BY_SPELLING.get(spelling)
    if attribute is None or not isinstance(tensor, Name) or tensor.plain is None:
        return None
    parameter = "" if spelling.parameters == 0 else _parameter(expression.arguments[0])
    return None if parameter is None else Reading(attribute, tensor, parameter)


def _decomposed(call: Call) -> tuple[Expression | None, _Spelling]:
    """The tensor of a call and how the call is spelt around it."""
    function = call.function
    if isinstance(function, Member):
        access = "->" if function.arrow else "."
        return function.receiver, _Spelling(function.name, access, len(call.arguments))
    if isinstance(function, Name) and function.plain is not None and len(call.arguments) == 1:
        return call.arguments[0], _Spelling(function.plain, "", 0)
    return None, _Spelling("", "", 0)


def _parameter(argument: Expression) -> str | None:
    if isinstance(argument, Unary) and argument.operator == "-":
        operand = argument.operand
        return f"-{operand.text}" if isinstance(operand, Literal) and operand.text.isdecimal() else None
    if isinstance(argument, Name):
        return argument.plain
    return argument.text if isinstance(argument, Literal) and argument.text.isdecimal() else None


def _spelling(attribute: Attribute) -> _Spelling:
    call = parse_expression(attribute.written)
    assert isinstance(call, Call), f"'{attribute.written}' is no call"
    return _decomposed(call)[1]


_BY_SPELLING = {_spelling(attribute): attribute for attribute in ATTRIBUTES}
