"""Whether the gradient formulas of a block use incoming gradients consistently and within their number."""

from __future__ import annotations

from collections.abc import Callable

from ..parse.formula import IndexUse, NameUse
from ..parse.report import Report
from .block import Block, Rule, counted

Use = tuple[Rule, NameUse]


def check_gradients(
    block: Block, differentiable: tuple[str, ...], stated_differentiable: int | None, report: Report
) -> None:
    """Report indices out of range, mixed spellings, and spellings that do not fit the number of outputs.

    Args:
        block: the formulas.
        differentiable: the outputs whose gradients come in, in order.
        stated_differentiable: how many outputs ``output_differentiability`` calls so; None without it.
        report: where findings go.
    """
    single = _uses(block, lambda name: name == "grad")
    several = _uses(block, lambda name: name == "grads")
    named_names = {f"grad_{name}" for name in differentiable} - {
        argument.name for argument in block.operator.schema.formula_arguments
    }
    named = _uses(block, lambda name: name in named_names)
    _check_ranges(block, differentiable, report)
    _check_masks(block, report)
    if _check_mixing(single, several, named, report):
        return
    _check_only_first(block, several, differentiable, report)
    taken = {argument.name for argument in block.operator.schema.formula_arguments}
    if single and "grad" not in taken and stated_differentiable is not None and stated_differentiable > 1:
        rule, use = single[0]
        report.error(
            rule.formula.span(use),
            f"'grad' is the gradient of an only output, and '{block.operator.schema.full_name}' has "
            f"{stated_differentiable} differentiable outputs",
            f"write {_choices(block, differentiable)}",
        )


def _uses(block: Block, wanted: Callable[[str], bool]) -> list[Use]:
    return [(rule, use) for rule in block.gradients for use in rule.formula.free_names if wanted(use.name)]


def _choices(block: Block, differentiable: tuple[str, ...]) -> str:
    """How to write a single gradient of several: ``'grads[0]' or 'grad_values'``."""
    named = {output.name for output in block.operator.schema.returns}
    first = differentiable[0] if differentiable else None
    return f"'grads[0]' or 'grad_{first}'" if first in named else "'grads[0]'"


def _check_ranges(block: Block, differentiable: tuple[str, ...], report: Report) -> None:
    schema = block.operator.schema
    if any(output.is_list for output in schema.returns):
        return
    count = len(differentiable)
    for rule in block.gradients:
        for use in rule.formula.gradient_indices:
            if use.position < count:
                continue
            message = f"'grads[{use.position}]' is out of range: '{schema.full_name}' has "
            message += counted(count, "differentiable output")
            hint = None
            if count == 1:
                hint = "write 'grad', the gradient of the only one"
            elif count > 1:
                hint = f"the last one is 'grads[{count - 1}]'"
            report.error(rule.formula.span(use), message, hint)


def _check_masks(block: Block, report: Report) -> None:
    for rule in block.gradients:
        for use in rule.formula.indexed:
            if use.name == "grad_input_mask" and use.position is not None and use.position >= len(rule.names):
                names = ", ".join(rule.names)
                report.error(
                    rule.formula.span(use),
                    f"'grad_input_mask[{use.position}]' is out of range: this formula is for "
                    f"{counted(len(rule.names), 'argument')}, '{names}'",
                    "the mask has one element per name left of the colon",
                )


def _check_mixing(single: list[Use], several: list[Use], named: list[Use], report: Report) -> bool:
    """Report the first use of a second way to name gradients."""
    ways = [uses[0] for uses in (single, several, named) if uses]
    if len(ways) < 2:
        return False
    (_, first), (rule, second) = sorted(ways, key=lambda way: way[0].formula.span(way[1]).start)[:2]
    shown = [f"'{use.name}'" for use in (first, second)]
    pair = {first.name, second.name}
    hint = "use one of them throughout the entry"
    if pair == {"grad", "grads"}:
        hint = "write 'grads[0]' instead of 'grad'"
    report.error(
        rule.formula.span(_indexed(rule, second) or second),
        f"this entry names gradients both as {shown[0]} and as {shown[1]}",
        hint,
    )
    return True


def _indexed(rule: Rule, use: NameUse) -> IndexUse | None:
    """The indexed form of a use, so that a caret covers ``grads[1]`` and not ``grads``."""
    return next((one for one in rule.formula.indexed if one.start == use.start), None)


def _check_only_first(
    block: Block, several: list[Use], differentiable: tuple[str, ...], report: Report
) -> None:
    positions = {use.position for rule in block.gradients for use in rule.formula.gradient_indices}
    if not several or positions != {0} or any(rule.formula.uses_all_gradients for rule in block.gradients):
        return
    rule = next(rule for rule in block.gradients if rule.formula.gradient_indices)
    message = "'grads[0]' is the only gradient that this entry uses"
    if len(differentiable) > 1:
        hint = (
            "if only the first output is differentiable write 'grad'; "
            f"otherwise the gradient{'s' if len(differentiable) > 2 else ''} of the other outputs "
            "must not be lost"
        )
    else:
        hint = "write 'grad'"
    report.error(rule.formula.span(rule.formula.gradient_indices[0]), message, hint)
