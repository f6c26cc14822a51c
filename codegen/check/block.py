"""The formulas of one dispatch key, sorted by what they are for, with everything wrong on their left sides
reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..parse.expression import Name
from ..parse.formula import Formula, FormulaSyntaxError, parse_formula
from ..parse.nearest import did_you_mean, quoted
from ..parse.report import Report
from ..parse.schema import Argument
from ..parse.span import SourceText, Span
from ..parse.yaml_source import DISPATCH, NAME, OUTPUT_DIFFERENTIABILITY, RawDispatch, RawFormula
from ..resolve.formula import resolve_formula, values_of
from ..resolve.records import ResolvedFormula, Saved
from ..torch_install.operators import Operator
from ..torch_install.vocabulary import Vocabulary
from .lookup import describe_scope

NON_DIFFERENTIABLE = "non_differentiable"
AUTO_LINEAR = "auto_linear"
AUTO_ELEMENT_WISE = "auto_element_wise"
RULE_WORDS = (NON_DIFFERENTIABLE, AUTO_LINEAR, AUTO_ELEMENT_WISE)
OPTION_KEYS = (NAME, DISPATCH, OUTPUT_DIFFERENTIABILITY)


@dataclass(frozen=True)
class Rule:
    """One formula with its parsed text."""

    raw: RawFormula
    names: tuple[str, ...]
    formula: Formula


@dataclass(frozen=True)
class GradientRule(Rule):
    """A formula for the gradients of arguments."""

    resolved: ResolvedFormula
    """Over the values that the forward saves."""


@dataclass
class Block:
    """What one dispatch key says about one operator."""

    operator: Operator
    gradients: list[GradientRule] = field(default_factory=list)
    """Formulas for arguments."""
    forward: list[Rule] = field(default_factory=list)
    """Formulas for outputs."""
    non_differentiable: list[str] = field(default_factory=list)
    """Arguments that are marked so."""

    @property
    def with_gradient(self) -> frozenset[str]:
        """The arguments that have a gradient formula."""
        return frozenset(name for rule in self.gradients for name in rule.names)

    @property
    def is_foreach(self) -> bool:
        """Whether a formula stands for each element of lists, so that ``i`` counts them."""
        return self.operator.schema.name.startswith("_foreach_")


def parse_checked(source: SourceText, report: Report) -> Formula | None:
    """The parsed formula, or None after a message."""
    try:
        return parse_formula(source)
    except FormulaSyntaxError as error:
        report.error(source.part(error.start, error.end), error.message, error.hint)
        return None


def read_block(block: RawDispatch, operator: Operator, vocabulary: Vocabulary, report: Report) -> Block:
    """Sort the formulas of ``block``; those with mistakes are reported and left out."""
    result = Block(operator)
    arguments = {argument.name: argument for argument in operator.schema.formula_arguments}
    outputs = forward_names(operator)
    seen: dict[str, Span] = {}
    for raw in block.formulas:
        names = _known_names(raw, arguments, outputs, operator, vocabulary, report)
        if not names:
            continue
        if any(name.text in arguments for name in names) and any(name.text in outputs for name in names):
            report.error(
                raw.key.span,
                "this key mixes arguments and outputs: a formula gives gradients or forward derivatives",
                describe_scope(operator),
            )
            continue
        _check_repeats(names, seen, report)
        if names[0].text in arguments:
            _read_gradient(raw, [arguments[name.text] for name in names], names, result, report)
        else:
            formula = _forward_formula(raw, report)
            if formula is not None:
                result.forward.append(Rule(raw, tuple(name.text for name in names), formula))
    _check_saved_names(result, report)
    return result


def arguments_of(operator: Operator) -> tuple[str, ...]:
    """The names under which a gradient may be given."""
    return tuple(argument.name for argument in operator.schema.formula_arguments)


def forward_names(operator: Operator) -> tuple[str, ...]:
    """The names under which a forward derivative may be given: the outputs', and their numbers."""
    schema = operator.schema
    numbered = ["result"] if len(schema.returns) == 1 else [f"result{i}" for i in range(len(schema.returns))]
    arguments = {argument.name for argument in schema.formula_arguments}
    return tuple(dict.fromkeys(name for name in (*schema.output_names, *numbered) if name not in arguments))


def _known_names(
    raw: RawFormula,
    arguments: dict[str, Argument],
    outputs: tuple[str, ...],
    operator: Operator,
    vocabulary: Vocabulary,
    report: Report,
) -> list[SourceText]:
    """The names left of the colon if all are arguments or outputs; none after messages about them."""
    wrong = False
    for name in raw.names:
        if name.text in arguments or name.text in outputs:
            continue
        wrong = True
        if not name.text:
            report.error(raw.key.span, "a name is missing beside the ',' of this key")
            continue
        hint = describe_scope(operator)
        message = f"'{name.text}' is no argument or output of '{operator.schema.full_name}'"
        close = did_you_mean(name.text, [*arguments, *outputs, *OPTION_KEYS])
        if name.text in vocabulary.dispatch_keys:
            message = f"the dispatch key '{name.text}' must stand below '{DISPATCH}:'"
        elif name.text in {argument.name for argument in operator.schema.arguments}:
            message = f"'{name.text}' is part of the argument 'options' and has no gradient"
        elif numbered := re.fullmatch(r"result(\d*)", name.text):
            message = f"{message}: it has {counted(len(operator.schema.returns), 'output')}"
            close = None if numbered else close
        report.error(name.span, message, f"{close}\n{hint}" if close else hint)
    return [] if wrong else list(raw.names)


def _check_repeats(names: list[SourceText], seen: dict[str, Span], report: Report) -> None:
    for name in names:
        if name.text in seen:
            hint = f"the first one is at line {seen[name.text].line}; keep one of them"
            report.error(name.span, f"a second formula for '{name.text}'", hint)
        else:
            seen[name.text] = name.span


def _read_gradient(
    raw: RawFormula, arguments: list[Argument], names: list[SourceText], result: Block, report: Report
) -> None:
    text = raw.text.strip()
    if text.lower() == NON_DIFFERENTIABLE:
        result.non_differentiable += [argument.name for argument in arguments]
        return
    for argument, name in zip(arguments, names, strict=True):
        if not argument.is_tensor:
            tensors = [one.name for one in result.operator.schema.formula_arguments if one.is_tensor]
            report.error(
                name.span,
                f"'{name.text}' is of type '{argument.type}', for which no gradient exists",
                f"remove the formula; tensors are {quoted(tensors)}" if tensors else "remove the formula",
            )
            return
    if text in (AUTO_LINEAR, AUTO_ELEMENT_WISE):
        report.error(
            raw.source.span,
            f"'{text}' is a rule for forward derivatives, and '{names[0].text}' is an argument",
            f"give it for an output: '{forward_names(result.operator)[0]}: {text}'"
            if forward_names(result.operator)
            else None,
        )
        return
    formula = parse_checked(raw.source, report)
    if formula is not None:
        inputs = tuple(argument.name for argument in arguments)
        resolved = resolve_formula(formula, inputs, values_of(result.operator.schema), report)
        result.gradients.append(GradientRule(raw, inputs, formula, resolved))


def _check_saved_names(block: Block, report: Report) -> None:
    """Report two different values that would be saved under one name, such as ``self.dim()`` and ``self_dim``."""
    first: dict[str, Saved] = {}
    for rule in block.gradients:
        for saved in rule.resolved.saved:
            other = first.setdefault(saved.name, saved)
            if saved.expression != other.expression:
                report.error(
                    rule.formula.source.span,
                    f"'{other.expression}' and '{saved.expression}' would both be saved as '{saved.name}'",
                    "give an argument of the operator another name",
                )


def _forward_formula(raw: RawFormula, report: Report) -> Formula | None:
    if raw.text.strip().lower() == NON_DIFFERENTIABLE:
        report.error(
            raw.source.span,
            f"'{NON_DIFFERENTIABLE}' is for arguments, and '{raw.names[0].text}' is an output",
            f"say it with '{OUTPUT_DIFFERENTIABILITY}: [...]'",
        )
        return None
    return parse_checked(raw.source, report)


def misspelt_rule(formula: Formula) -> str | None:
    """A hint if the whole formula is one word that is nearly a rule's name."""
    word = formula.root.plain if isinstance(formula.root, Name) else None
    return None if word is None else did_you_mean(word, RULE_WORDS)


def counted(count: int, word: str) -> str:
    """``no outputs``, ``1 output``, ``2 outputs``."""
    return f"{count} {word}" if count == 1 else f"{count or 'no'} {word}s"
