"""Whether the two automatic rules for forward derivatives can be applied where they are written."""

from __future__ import annotations

from ..parse.nearest import quoted
from ..parse.report import Report
from .block import AUTO_ELEMENT_WISE, AUTO_LINEAR, Block, Rule, counted


def is_automatic(rule: Rule) -> bool:
    """Whether the rule is ``auto_linear`` or ``auto_element_wise`` instead of a formula."""
    return rule.raw.text.strip() in (AUTO_LINEAR, AUTO_ELEMENT_WISE)


def check_automatic(rule: Rule, block: Block, report: Report) -> None:
    """Report what keeps an automatic rule from being applied."""
    word = rule.raw.text.strip()
    span = rule.raw.source.span
    inputs = [
        argument.name
        for argument in block.operator.schema.formula_arguments
        if argument.name in block.with_gradient
    ]
    if len(block.forward) > 1 or len(rule.names) > 1:
        outputs = [name for one in block.forward for name in one.names]
        message = (
            f"'{word}' is for operators with one differentiable output; this entry gives {quoted(outputs)}"
        )
        report.error(span, message, "write a formula for each output")
    elif word == AUTO_LINEAR and not inputs:
        report.error(
            span, f"'{word}' needs an argument with a gradient formula", "give an argument a formula"
        )
    elif word == AUTO_ELEMENT_WISE and block.operator.schema.is_inplace:
        message = f"'{word}' cannot be used for '{block.operator.schema.name}', which works in place"
        report.error(
            span, message, "write the forward formula, or leave the entry to the form that is not in place"
        )
    elif word == AUTO_ELEMENT_WISE and len(inputs) != 1:
        having = f"this entry has {counted(len(inputs), 'such argument')}"
        having = f"{having}: {quoted(inputs)}" if inputs else having
        message = f"'{word}' is for operators with one argument that has a gradient formula; {having}"
        report.error(span, message, "write the forward formula")
