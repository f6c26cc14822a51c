"""Which results of a forward operator have a gradient that its node takes, and what formulas call these gradients."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .. import names
from ..parse.schema import Return, Schema
from .records import Output, ResolvedFormula

SINGLE_GRADIENT = "grad"
"""What formulas call the gradient of an only result."""


def differentiable_results(schema: Schema, stated: Sequence[bool] | None) -> tuple[tuple[str, Return], ...]:
    """The results that may have a gradient, by name.

    ``stated`` is what the entry says with ``output_differentiability``: one truth value for each result.
    """
    says = stated if stated is not None else [True] * len(schema.returns)
    return tuple(
        (name, result)
        for name, result, differentiable in zip(schema.output_names, schema.returns, says, strict=True)
        if differentiable and result.is_tensor
    )


def named_gradients(schema: Schema, stated: Sequence[bool] | None) -> tuple[str, ...]:
    """``grad_values`` for a result that the schema calls ``values``; arguments have their names first."""
    arguments = {argument.name for argument in schema.formula_arguments}
    found = (
        names.named_gradient(result.name)
        for _, result in differentiable_results(schema, stated)
        if result.name is not None
    )
    return tuple(name for name in found if name not in arguments)


def node_outputs(
    schema: Schema, stated: Sequence[bool] | None, formulas: Collection[ResolvedFormula]
) -> tuple[Output, ...]:
    """The results whose gradients the node takes.

    Where the entry does not say which they are, formulas that speak of ``grad`` mean the first one alone.
    """
    found = tuple(Output(name, result.is_list) for name, result in differentiable_results(schema, stated))
    if stated is None and _speak_of_one(schema, formulas):
        return found[:1]
    return found


def _speak_of_one(schema: Schema, formulas: Collection[ResolvedFormula]) -> bool:
    if any(argument.name == SINGLE_GRADIENT for argument in schema.formula_arguments):
        return False
    return any(formula.written.uses(SINGLE_GRADIENT) for formula in formulas)
