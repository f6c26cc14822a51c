"""Whether a change in the derivatives of an operator of torch can take effect.

A node whose formulas can be compiled here computes what the YAML says. For any other, backbind calls the code that
torch was compiled with, which no YAML changes; and no YAML changes which gradients a node of torch has. What could not
take effect is an error: otherwise the text of a node would change and its results would not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..model.link_facts import LinkFacts
from ..model.mode import ZEROS, first_unlinkable
from ..parse.nearest import quoted
from ..parse.report import Report
from ..parse.yaml_source import RawEntry
from ..torch_install.compiled_formulas import (
    CompiledFormulas,
    differentiability_digest,
    formula_digest,
    input_digest,
    node_digest,
)
from ..torch_install.operators import Operators
from .block import Block, GradientRule, Rule
from .entries import JudgedEntry


def digests(entries: Iterable[JudgedEntry]) -> Iterator[str]:
    """Everything that `CompiledFormulas` can be asked, of the derivatives that a torch was compiled from."""
    for entry in entries:
        schema = entry.operator.schema.text
        yield differentiability_digest(schema, _differentiability(entry.raw))
        for raw, block in zip(entry.raw.dispatch, entry.blocks, strict=True):
            yield node_digest(schema, raw.key)
            yield from (input_digest(schema, raw.key, name) for name in block.with_gradient)
            for rule in (*block.gradients, *block.forward):
                yield formula_digest(schema, raw.key, rule.names, rule.formula.text)


def check_compiled(
    entries: Iterable[JudgedEntry],
    operators: Operators,
    compiled: CompiledFormulas,
    link_facts: Callable[[], LinkFacts],
    report: Report,
    compiles_nothing: bool = False,
) -> None:
    """Report each difference from ``compiled`` that cannot take effect.

    Args:
        entries: entries without other errors. Those of operators that torch has no derivatives for are passed over.
        operators: the operators of torch.
        compiled: what torch was compiled from.
        link_facts: gives what links; asked only where something differs.
        report: where findings go.
        compiles_nothing: whether torch's own code is called for every node.
    """
    entries = tuple(entries)
    written = frozenset(entry.operator.schema.full_name for entry in entries)
    for entry in entries:
        schema = entry.operator.schema.text
        known = [compiled.has_node(schema, raw.key) for raw in entry.raw.dispatch]
        if not any(known):
            continue
        _check_differentiability(entry, compiled, report)
        for raw, block, has_node in zip(entry.raw.dispatch, entry.blocks, known, strict=True):
            if not has_node:
                report.error(
                    raw.span, f"torch has no backward node of '{_name(entry)}' for '{raw.key}'", _NEW_NODE
                )
                continue
            if not _check_inputs(entry, raw.key, block, compiled, report):
                continue
            changed = [
                rule
                for rule in block.gradients
                if not compiled.has_formula(schema, raw.key, rule.names, rule.formula.text)
            ]
            if changed:
                _check_changed(entry, block, changed, None if compiles_nothing else link_facts(), report)
                _tell_of_derived(entry, changed[0], operators, written, report)
            for forward in block.forward:
                if not compiled.has_formula(schema, raw.key, forward.names, forward.formula.text):
                    report.notice(
                        forward.raw.source.span,
                        "this changes nothing: backbind makes backward nodes, and this is a forward derivative",
                    )


_NEW_NODE = "a change in the YAML alone can change what a node computes, and makes no new ones"


def _name(entry: JudgedEntry) -> str:
    return entry.operator.schema.full_name


def _differentiability(entry: RawEntry) -> str:
    return "" if entry.output_differentiability is None else entry.output_differentiability.span.text


def _check_differentiability(entry: JudgedEntry, compiled: CompiledFormulas, report: Report) -> None:
    stated = entry.raw.output_differentiability
    if compiled.has_differentiability(entry.operator.schema.text, _differentiability(entry.raw)):
        return
    report.error(
        entry.raw.name.span if stated is None else stated.span,
        f"torch's node of '{_name(entry)}' was compiled with another 'output_differentiability'",
        "which gradients a node takes cannot be changed here; restore the line",
    )


def _check_inputs(
    entry: JudgedEntry, key: str, block: Block, compiled: CompiledFormulas, report: Report
) -> bool:
    """Whether the block has gradients for just the arguments for which torch's node has them."""
    schema = entry.operator.schema
    theirs = {
        argument.name
        for argument in schema.formula_arguments
        if compiled.differentiates(schema.text, key, argument.name)
    }
    hint = (
        "which gradients a node gives cannot be changed here, only what they are: the node itself is torch's"
    )
    for rule in block.gradients:
        more = [name for name in rule.names if name not in theirs]
        if more:
            message = f"torch's node of '{_name(entry)}' has no gradient for {quoted(more)}"
            report.error(rule.raw.key.span, message, hint)
    missing = [name for name in sorted(theirs) if name not in block.with_gradient]
    if missing:
        message = (
            f"torch's node of '{_name(entry)}' has a gradient for {quoted(missing)}, and this entry has none"
        )
        report.error(entry.raw.name.span, message, hint)
    return theirs == block.with_gradient


def _check_changed(
    entry: JudgedEntry, block: Block, changed: list[GradientRule], facts: LinkFacts | None, report: Report
) -> None:
    """Report the changed formulas of a node for which torch's own code is called."""
    if facts is None:
        reason = "'--mode delegate' compiles no formula, and calls torch's own code for every node"
    else:
        blocked = first_blocked(block, facts)
        if blocked is None:
            return
        rule, helper = blocked
        place = f"the formula of {quoted(rule.names)}" if rule not in changed or len(changed) > 1 else "it"
        reason = (
            f"{place} calls '{helper}', which torch does not export, so backbind cannot compile the node\n"
            f"write {place} with functions that can be called, or write '{helper}' in csrc/formulas and list it in "
            "codegen/model/helpers.py"
            if helper != ZEROS
            else f"{place} calls 'zeros_like' of a saved tensor, whose code torch does not export, so backbind cannot "
            "compile the node"
        )
    for rule in changed:
        report.error(
            rule.raw.source.span,
            f"this formula would change nothing: '{_name(entry)}' would go on computing the one that torch was "
            "compiled with",
            f"{reason}\n{'or ' if 'write' in reason else ''}restore torch's formula",
        )


def first_blocked(block: Block, facts: LinkFacts) -> tuple[GradientRule, str] | None:
    """The formula of a node that cannot be compiled here, and the helper in it that keeps it from that."""
    for rule in block.gradients:
        helper = first_unlinkable(rule.resolved.parsed, facts)
        if helper is not None:
            return rule, helper
    return None


def _tell_of_derived(
    entry: JudgedEntry, rule: Rule, operators: Operators, written: frozenset[str], report: Report
) -> None:
    """Nodes of lists of tensors are derived from single tensors' entries; some of them are torch's own code always."""
    for operator in operators.by_name.get(f"_foreach_{entry.operator.schema.name}", ()):
        shared = [one for one in operator.schema.arguments if one.is_tensor and not one.is_list]
        if shared and not operator.schema.is_out and operator.schema.full_name not in written:
            report.notice(
                rule.raw.source.span,
                f"'{operator.schema.full_name}', which is derived from this entry, keeps the formula that torch was "
                "compiled with",
                f"'{shared[0].name}' is shared by all elements of a list there, and only torch's own code sums its "
                "gradient",
            )
