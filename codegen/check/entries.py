"""The judgement of whole files: every entry against its operator, and the entries against one another."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..parse.nearest import did_you_mean, quoted
from ..parse.report import Report, processing
from ..parse.span import SourceText, Span
from ..parse.yaml_source import DEFAULT_KEY, DISPATCH, RawDifferentiability, RawEntry, describe
from ..parse.yaml_tree import Node, ScalarNode
from ..resolve.outputs import differentiable_results
from ..resolve.records import EntryFormulas, KeyFormulas
from ..torch_install.operators import Operator, Operators
from ..torch_install.vocabulary import Vocabulary
from .block import OPTION_KEYS, Block, arguments_of, counted, forward_names, parse_checked, read_block
from .formulas import check_rule, check_vocabulary
from .forward import check_automatic, is_automatic
from .gradients import check_gradients
from .lookup import find_operator
from .scope import backward_scope, forward_scope


@dataclass(frozen=True)
class JudgedEntry:
    """An entry in which nothing is wrong."""

    raw: RawEntry
    operator: Operator
    blocks: tuple[Block, ...]
    """One for each dispatch key, in the order of ``raw.dispatch``."""

    @property
    def formulas(self) -> EntryFormulas:
        """Its resolved formulas, of which nodes are made."""
        stated = self.raw.output_differentiability
        return EntryFormulas(
            self.operator.schema,
            self.raw.name.span,
            tuple(
                KeyFormulas(
                    raw.key, tuple(rule.resolved for rule in block.gradients), bool(block.non_differentiable)
                )
                for raw, block in zip(self.raw.dispatch, self.blocks, strict=True)
            ),
            None if stated is None else stated.truth_values,
        )


def check_entries(
    entries: Iterable[RawEntry], operators: Operators, vocabulary: Vocabulary, report: Report
) -> tuple[JudgedEntry, ...]:
    """Judge ``entries``; every finding goes to ``report``. The result are the entries without errors.

    Errors make an entry unusable. Notices tell of what is legal and easily not meant: an entry that makes no
    node, an entry for some devices only.

    Args:
        entries: what `codegen.parse.yaml_source.parse_entries` gave.
        operators: the operators that entries may name.
        vocabulary: the names that formulas may use.
        report: where findings go.

    Raises:
        InternalError: a mistake of ours; it names the entry.
    """
    judged: list[JudgedEntry] = []
    first_of: dict[str, Span] = {}
    # What was found while the entries were read; looking through all findings for each entry would take quadratic time.
    broken = sorted(error.span.start for error in report.errors)
    for entry in entries:
        with processing(f"entry '{entry.name.text}'", entry.name.span):
            found = report.error_count
            schema = entry.name.text.strip()
            if schema in first_of:
                hint = f"the first one is at line {first_of[schema].line}; keep one of them"
                report.error(entry.name.span, f"a second entry for '{schema}'", hint)
            else:
                first_of[schema] = entry.name.span
            good = _check_entry(entry, operators, vocabulary, report)
            if good is not None and report.error_count == found and not _any_within(broken, entry.span):
                _give_notices(good, report)
                judged.append(good)
    return tuple(judged)


def _any_within(places: Sequence[int], span: Span) -> bool:
    """Whether one of the places, which are in order, lies in the span."""
    first = bisect_left(places, span.start)
    return first < len(places) and places[first] <= span.end


def _check_entry(
    entry: RawEntry, operators: Operators, vocabulary: Vocabulary, report: Report
) -> JudgedEntry | None:
    """The entry with its formulas sorted, if it names an operator; every finding goes to ``report``."""
    for block in entry.dispatch:
        if block.key not in vocabulary.dispatch_keys:
            keys = vocabulary.dispatch_keys
            hint = did_you_mean(block.key, keys) or f"dispatch keys are {quoted(keys)}"
            report.error(block.span, f"there is no autograd dispatch key '{block.key}'", hint)
    operator = find_operator(entry.name, operators, report)
    for key, value in entry.unknown:
        _check_unknown_key(entry, key, value, operator, report)
    if operator is None:
        for block in entry.dispatch:
            for raw in block.formulas:
                # Without the operator its names are unknown, but a missing bracket is one all the same.
                parse_checked(raw.source, report)
        return None
    listed = entry.output_differentiability
    says = None if listed is None else _check_differentiability(listed, operator, vocabulary, report)
    differentiable = tuple(name for name, _ in differentiable_results(operator.schema, says))
    stated = None if says is None else len(differentiable)
    blocks = tuple(read_block(block, operator, vocabulary, report) for block in entry.dispatch)
    for judged in blocks:
        _check_block(judged, differentiable, stated, vocabulary, report)
    return JudgedEntry(entry, operator, blocks)


def _check_block(
    block: Block, differentiable: tuple[str, ...], stated: int | None, vocabulary: Vocabulary, report: Report
) -> None:
    backward_names = backward_scope(block, differentiable)
    for gradient in block.gradients:
        check_rule(gradient, backward_names, vocabulary, report)
    check_gradients(block, differentiable, stated, report)
    forward_names = forward_scope(block, differentiable)
    for forward in block.forward:
        if is_automatic(forward):
            check_automatic(forward, block, report)
        else:
            check_rule(forward, forward_names, vocabulary, report)


def _check_unknown_key(
    entry: RawEntry, key: SourceText, value: Node, operator: Operator | None, report: Report
) -> None:
    known = () if operator is None else (*arguments_of(operator), *forward_names(operator))
    if not isinstance(value, ScalarNode) and all(name.text in known for name in key.pieces(",")):
        message = f"the formula of '{key.text}' must be text, found {describe(value)}"
        report.error(value.span, message, "put the formula in double quotes")
        return
    if entry.has_dispatch and isinstance(value, ScalarNode):
        message = f"the formula of '{key.text}' stands beside '{DISPATCH}'"
        report.error(key.span, message, f"move it below a dispatch key, for example '{DEFAULT_KEY}:'")
        return
    close = did_you_mean(key.text, OPTION_KEYS)
    hint = (
        close
        or f"options are {quoted(OPTION_KEYS)}; every other key is an argument or output with its formula"
    )
    report.error(key.span, f"there is no option '{key.text}' that takes {describe(value)}", hint)


def _check_differentiability(
    stated: RawDifferentiability, operator: Operator, vocabulary: Vocabulary, report: Report
) -> tuple[bool, ...] | None:
    """What an entry says about its outputs, one value for each; None after a message that their number is wrong."""
    schema = operator.schema
    count = len(schema.returns)
    _check_conditions(stated, operator, vocabulary, report)
    if len(stated.items) == count:
        return stated.truth_values
    names = f": {quoted(schema.output_names)}" if schema.output_names else ""
    report.error(
        stated.span,
        f"this list has {counted(len(stated.items), 'value')}, "
        f"but '{schema.full_name}' has {counted(count, 'output')}{names}",
        "write one value per output",
    )
    return None


def _check_conditions(
    stated: RawDifferentiability, operator: Operator, vocabulary: Vocabulary, report: Report
) -> None:
    """A condition in C++ in place of a truth value, over the arguments of the schema."""
    schema = operator.schema
    arguments = frozenset(argument.name for argument in schema.arguments)
    for item, span in zip(stated.items, stated.item_spans, strict=True):
        if isinstance(item, bool):
            continue
        if len(schema.returns) != 1:
            message = f"a condition needs one output; '{schema.full_name}' has {len(schema.returns)}"
            report.error(span, message, "write True or False")
            continue
        formula = parse_checked(item, report)
        if formula is None:
            continue
        for use in formula.free_names:
            if use.name not in arguments and not vocabulary.is_constant(use.name):
                message = f"'{use.name}' is no argument of '{schema.full_name}'"
                hint = (
                    did_you_mean(use.name, ["True", "False", *arguments])
                    or f"arguments are {quoted(sorted(arguments))}"
                )
                report.error(formula.span(use), message, hint)
        check_vocabulary(formula, arguments, vocabulary, report)


def _give_notices(judged: JudgedEntry, report: Report) -> None:
    entry, blocks, name = judged.raw, judged.blocks, judged.operator.schema.full_name
    if not any(block.gradients for block in blocks):
        marked = any(block.non_differentiable for block in blocks)
        reason = (
            "its arguments are marked non_differentiable" if marked else "no argument has a gradient formula"
        )
        report.notice(entry.name.span, f"'{name}' gets no backward node: {reason}")
    elif entry.has_dispatch and all(block.key != DEFAULT_KEY for block in entry.dispatch):
        keys = quoted(block.key for block in entry.dispatch)
        report.notice(
            entry.name.span,
            f"'{name}' gets a backward node for {keys} only, and none for other devices",
            f"if that is not meant, add formulas below '{DEFAULT_KEY}:'",
        )
