"""Which plain names a formula may use, and the best explanation for one that it may not."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..parse.formula import NameUse
from ..parse.nearest import did_you_mean, quoted
from ..torch_install.vocabulary import Vocabulary
from .block import Block, counted
from .lookup import describe_outputs

GRADIENT_NAMES = ("grad", "grads")
BACKWARD_NAMES = (*GRADIENT_NAMES, "grad_input_mask", "retain_variables")
"""Names that every gradient formula has besides its operator's."""
_NUMBERED_OUTPUT = re.compile(r"result\d*")
PRIMAL, TANGENT = "_p", "_t"
"""What a forward formula appends to an argument's name for its value and for its tangent."""


@dataclass(frozen=True)
class Scope:
    """The variables of one kind of formula in one block."""

    block: Block
    forward: bool
    names: frozenset[str]
    differentiable_outputs: tuple[str, ...]

    def explain(self, use: NameUse, vocabulary: Vocabulary, close: str | None) -> tuple[str, str | None]:
        """Message and hint for a name that is not in `names`; ``close`` is a suggestion that was found
        before.
        """
        name, schema = use.name, self.block.operator.schema
        arguments = {
            argument.name for argument in (schema.arguments if self.forward else schema.formula_arguments)
        }
        if name in {argument.name for argument in schema.arguments} - arguments:
            return f"'{name}' is part of the argument 'options'", "write 'options'"
        special = (
            self._explain_forward(name, arguments)
            if self.forward
            else self._explain_backward(name, arguments)
        )
        if special is not None:
            return special
        if _NUMBERED_OUTPUT.fullmatch(name) and schema.output_names:
            message = (
                f"there is no '{name}': '{schema.full_name}' has {counted(len(schema.returns), 'output')}"
            )
            return message, describe_outputs(schema)
        if vocabulary.is_function(name):
            return f"'{name}' is a function and is not called here", f"write '{name}(...)'"
        kind = "argument, output or tangent" if self.forward else "argument, output or gradient"
        message = f"'{name}' is no {kind} of '{schema.full_name}' and no known constant"
        suggestion = close or did_you_mean(name, [*self.names, *vocabulary.constant_names])
        return message, suggestion or f"names in scope are {quoted(sorted(self.names))}"

    def _explain_backward(self, name: str, arguments: set[str]) -> tuple[str, str | None] | None:
        base = name[: -len(PRIMAL)]
        if name.endswith((PRIMAL, TANGENT)) and base in arguments:
            return f"'{name}' exists in forward formulas only", f"write '{base}'"
        output = name.removeprefix("grad_")
        if output != name and output in self.block.operator.schema.output_names:
            if output in {given.name for given in self.block.operator.schema.returns}:
                message = f"there is no '{name}': the output '{output}' is not differentiable"
                return message, f"differentiable outputs: {quoted(self.differentiable_outputs) or 'none'}"
            message = f"there is no '{name}': the operator's outputs have no names"
            return message, "write 'grad' or 'grads[...]'"
        return None

    def _explain_forward(self, name: str, arguments: set[str]) -> tuple[str, str | None] | None:
        if name in arguments:
            choice = f"write '{name}{PRIMAL}' for its value or '{name}{TANGENT}' for its tangent"
            return f"'{name}' is ambiguous in a forward formula", choice
        base = name[: -len(PRIMAL)]
        if name.endswith((PRIMAL, TANGENT)) and base in arguments:
            message = f"there is no '{name}': the argument '{base}' has no gradient formula"
            return message, f"write '{base}' for its value, or give '{base}' a gradient formula"
        if name in BACKWARD_NAMES or name.startswith("grad_"):
            tangents = sorted(one for one in self.names if one.endswith(TANGENT))
            hint = f"a forward formula starts from tangents: {quoted(tangents)}" if tangents else None
            return f"'{name}' exists in gradient formulas only", hint
        return None


def backward_scope(block: Block, differentiable: tuple[str, ...]) -> Scope:
    """The names of gradient formulas. ``differentiable`` are the outputs that have a gradient."""
    schema = block.operator.schema
    named = {output.name for output in schema.returns if output.name is not None}
    names = {argument.name for argument in schema.formula_arguments} | set(schema.output_names)
    names |= {*BACKWARD_NAMES, *(f"grad_{output}" for output in differentiable if output in named)}
    return Scope(block, False, _with_counter(names, block), differentiable)


def forward_scope(block: Block, differentiable: tuple[str, ...]) -> Scope:
    """The names of forward formulas: values and tangents of arguments with a gradient, other arguments,
    outputs.
    """
    schema = block.operator.schema
    with_gradient = block.with_gradient
    names = set(schema.output_names)
    if schema.is_inplace:
        names |= {f"original_self{PRIMAL}", f"original_self{TANGENT}"}
    # Forward formulas run where the operator is called, so dtype, layout and the like are not yet one there.
    for argument in schema.arguments:
        # A formula takes a list of tensors whole and looks for the tangents itself, except one per element.
        if argument.name in with_gradient and (block.is_foreach or not argument.is_list):
            names |= {argument.name + PRIMAL, argument.name + TANGENT}
        else:
            names.add(argument.name)
    return Scope(block, True, _with_counter(names, block), differentiable)


def _with_counter(names: set[str], block: Block) -> frozenset[str]:
    return frozenset(names | {"i"}) if block.is_foreach else frozenset(names)
