"""Finding the operator that an entry names, or saying why there is none."""

from __future__ import annotations

import re

from ..parse.nearest import did_you_mean_one_of, nearest_name, quoted
from ..parse.report import Report
from ..parse.schema import Schema, SchemaSyntaxError, operator_name, parse_schema
from ..parse.span import SourceText, Span
from ..torch_install.operators import Operator, Operators

RESERVED_ARGUMENTS = frozenset({"grad_input_mask", "result", "retain_variables"})
"""Names that mean something else in every formula, so no argument may have them."""

SHOWN_SIGNATURES = 8
"""How many signatures a hint lists before it only counts the rest."""


def find_operator(name: SourceText, operators: Operators, report: Report) -> Operator | None:
    """The operator whose schema is ``name``; None after a message about what is wrong with it."""
    written = name.text.strip()
    operator = operators.by_schema.get(written)
    if operator is None:
        _report_unknown(name, written, operators, report)
        return None
    if operator.schema.is_out:
        functional = _functional_of(operator, operators)
        hint = f"write the entry for '{functional}'" if functional else None
        report.error(
            name.span, f"'{operator.schema.full_name}' is an out= form, which never has derivatives", hint
        )
        return None
    for argument in operator.schema.formula_arguments:
        if argument.name in RESERVED_ARGUMENTS:
            report.error(
                _part(name, argument.name),
                f"'{argument.name}' cannot be the name of an argument: formulas use it for something else",
                "give the argument another name in the operator's schema",
            )
            return None
    return operator


def _report_unknown(name: SourceText, written: str, operators: Operators, report: Report) -> None:
    base, start, end = operator_name(written)
    start, end = (name.text.index(written) + offset for offset in (start, end))
    known = operators.by_name.get(base)
    if known is None:
        close = nearest_name(base, operators.by_name)
        hint = (
            f"{did_you_mean_one_of([close])} {_signatures(operators.by_name[close])}"
            if close is not None
            else "for an operator of your own pass the file with its schema: --native FILE"
        )
        report.error(name.part(start, end), f"there is no operator '{base}'", hint)
        return
    signatures = _signatures(known)
    try:
        parse_schema(written)
    except SchemaSyntaxError as error:
        offset = name.text.index(written)
        span = name.part(offset + error.start, offset + max(error.end, error.start))
        report.error(span, f"this is not a schema of '{base}': {error.message}", f"{signatures}")
        return
    report.error(name.span, f"'{base}' has no signature '{written}'", signatures)


def _signatures(operators: tuple[Operator, ...]) -> str:
    """For a hint: the signatures with which an entry could be written."""
    schemas = [operator.schema.text for operator in operators if not operator.schema.is_out]
    shown = schemas[:SHOWN_SIGNATURES]
    if len(schemas) > len(shown):
        shown.append(f"and {len(schemas) - len(shown)} more")
    title = "its signature is" if len(schemas) == 1 else "its signatures are"
    return "\n".join([title, *(f"  {schema}" for schema in shown)])


def _functional_of(operator: Operator, operators: Operators) -> str | None:
    """The schema with the same name and the same inputs that writes into nothing."""
    inputs = [argument.name for argument in operator.schema.arguments if not argument.written]
    for other in operators.by_name.get(operator.schema.name, ()):
        if not other.schema.is_out and [argument.name for argument in other.schema.arguments] == inputs:
            return other.schema.text
    return None


def _part(name: SourceText, word: str) -> Span:
    found = re.search(rf"\b{re.escape(word)}\b", name.text)
    return name.span if found is None else name.part(found.start(), found.end())


def describe_scope(operator: Operator) -> str:
    """For a hint: what the operator has."""
    arguments = [argument.name for argument in operator.schema.formula_arguments]
    parts = ["it has no arguments"]
    if arguments:
        parts = [f"{'arguments are' if len(arguments) > 1 else 'the argument is'} {quoted(arguments)}"]
    if operator.schema.returns:
        parts.append(describe_outputs(operator.schema))
    return "; ".join(parts)


def describe_outputs(schema: Schema) -> str:
    """For a hint: ``outputs are 'values', 'indices'``."""
    names = schema.output_names
    return f"{'outputs are' if len(names) > 1 else 'the output is'} {quoted(names)}"
