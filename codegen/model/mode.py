"""Decides for each node whether its formulas are compiled as they stand or its node struct is called.

A formula can be compiled here if every function and constant in it links from outside torch. The first name that does
not is the reason for a delegate, and is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..parse.formula import Formula as ParsedFormula
from ..resolve.records import Input
from .link_facts import LinkFacts
from .node import Formula, Mode, ModeChoice

ZEROS = "TypeAndSize::zeros"
"""What zeros like a saved tensor are made by: a method of the node struct's field that torch keeps to itself."""


def choose_mode(
    formulas: Iterable[Formula],
    inputs: tuple[Input, ...],
    is_foreach: bool,
    facts: LinkFacts,
) -> ModeChoice:
    """Inline where every name of every formula resolves, delegate otherwise."""
    if is_foreach and not all(one.is_list for one in inputs):
        return ModeChoice(
            Mode.DELEGATE,
            "a tensor shared by all elements of a list gets a gradient, whatever the formula of one element",
        )
    for formula in formulas:
        blocked = first_unlinkable(formula.parsed, facts)
        if blocked is not None:
            wanted = ", ".join(formula.inputs)
            return ModeChoice(
                Mode.DELEGATE, f"'{blocked}' in the formula of '{wanted}' is not exported by torch"
            )
    return ModeChoice(Mode.INLINE, "every name in its formulas links")


def first_unlinkable(parsed: ParsedFormula, facts: LinkFacts) -> str | None:
    """The first name in a formula that keeps it from being compiled here."""
    hidden = facts.declared - facts.callable
    for call in parsed.calls:
        if call.name in hidden:
            return call.name
    for name in parsed.free_names:
        if name.name in hidden:
            return name.name
    for method in parsed.methods:
        if method.name == "zeros" and (method.receiver_name or "").endswith("_info"):
            return ZEROS
    return None
