"""Resolves one formula: which values it makes the forward save, and how it reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..parse.expression import Call, Member, Name, walk
from ..parse.formula import Formula
from ..parse.nearest import quoted
from ..parse.report import Report
from ..parse.schema import Schema, is_tensor_type
from ..parse.span import Span
from .attributes import ATTRIBUTES, Attribute, Reading, find_reading
from .editing import Editing
from .forward_types import forward_type
from .records import ResolvedFormula, Saved, Value, Values

_WORD = re.compile(r"\w+")
_STRING_VIEW = "{x}.has_value() ? std::optional<std::string_view>({x}.value()) : std::nullopt"
"""How a formula reads an optional string: the node owns a string, and functions take a view of one."""


def values_of(schema: Schema) -> Values:
    """The arguments and results of an operator, as its formulas know them."""
    arguments = {one.name: Value(one.name, one.type, False) for one in schema.formula_arguments}
    results = {
        name: Value(name, one.type, True)
        for name, one in zip(schema.output_names, schema.returns, strict=True)
    }
    return results | arguments


def resolve_formula(
    formula: Formula, inputs: tuple[str, ...], values: Values, report: Report
) -> ResolvedFormula:
    """The formula for the gradients of ``inputs`` over saved values.

    Names that are none of ``values`` stay as they are. What cannot be saved is reported.
    """
    resolving = _Resolving(formula, inputs, values, report, Editing(formula.root))
    resolving.read_all()
    resolving.keep_mentioned()
    editing = resolving.editing
    return ResolvedFormula(
        inputs, formula, editing.edited_root(), tuple(editing.edits), tuple(resolving.saved)
    )


def saved_whole(value: Value, place: Span, report: Report) -> Saved | None:
    """A value as the forward saves it; None after a message at ``place`` that values of its type cannot be saved."""
    cpp_type = forward_type(value)
    if cpp_type is not None:
        return Saved(value.name, cpp_type, value.name, value.is_output)
    kind = "result" if value.is_output else "argument"
    message = f"the {kind} '{value.name}' of type '{value.type}' cannot be saved for the backward"
    report.error(place, message, "what can be saved is listed in codegen/resolve/forward_types.py")
    return None


@dataclass
class _Resolving:
    """One pass over a tree, which notes what is read and what comes into its place."""

    formula: Formula
    inputs: tuple[str, ...]
    values: Values
    report: Report
    editing: Editing
    saved: list[Saved] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    """Values that were read whole."""

    def read_all(self) -> None:
        # The names of functions, and everything inside a reading, are not variables that are read whole.
        passed: set[int] = set()
        for node, _, bound in walk(self.formula.root):
            if isinstance(node, Call):
                passed.add(id(node.function))
                reading = find_reading(node)
                value = self.value(reading.tensor, bound) if reading is not None else None
                if reading is not None and value is not None and self.read_attribute(node, reading, value):
                    passed.update(id(inside) for inside, _, _ in walk(node))
            elif isinstance(node, Name) and id(node) not in passed:
                value = self.value(node, bound)
                if value is not None:
                    self.read_whole(node, value)

    def keep_mentioned(self) -> None:
        """Save the values whose names stand in the formula as words, whatever they mean there.

        The structs that torch compiled have fields for these: ``at::real(grad)`` makes the forward save an argument
        ``real``, and so does a string with that word in it.
        """
        rest, position = [], 0
        for edit in self.editing.edits:
            rest.append(self.formula.text[position : edit.start])
            position = edit.end
        words = set(_WORD.findall(" ".join([*rest, self.formula.text[position:]])))
        for name in sorted(words & self.values.keys() - self.read):
            self.save_whole(self.values[name], self.formula.source.span)

    def value(self, name: Name, bound: frozenset[str]) -> Value | None:
        """The argument or result that a name means."""
        return None if name.plain is None or name.plain in bound else self.values.get(name.plain)

    def read_attribute(self, call: Call, reading: Reading, value: Value) -> bool:
        """Save an attribute of a value; False if the value is saved whole for it."""
        attribute = reading.attribute
        if not is_tensor_type(value.type) or not self.parameter_is_known(reading):
            return False
        if value.type != attribute.of:
            self.refuse_type(call, attribute, value)
        elif attribute.own_formula_only and self.inputs != (value.name,):
            self.refuse_foreign_reading(call, attribute, value)
        self.saved.append(
            Saved(reading.saved_name, attribute.cpp_type, reading.forward_expression, value.is_output)
        )
        self.editing.put(call, attribute.backward.format(saved=reading.saved_name))
        return True

    def parameter_is_known(self, reading: Reading) -> bool:
        """Whether the forward can evaluate what stands in the brackets: a number, or an argument."""
        parameter = reading.parameter
        if not parameter or parameter.removeprefix("-").isdecimal():
            return True
        value = self.values.get(parameter)
        return value is not None and not value.is_output

    def read_whole(self, name: Name, value: Value) -> None:
        self.read.add(value.name)
        self.save_whole(value, self.formula.span(name))
        if value.type == "str?":
            self.editing.put(name, _STRING_VIEW.format(x=value.name))

    def save_whole(self, value: Value, place: Span) -> None:
        saved = saved_whole(value, place, self.report)
        if saved is not None:
            self.saved.append(saved)

    def refuse_type(self, call: Call, attribute: Attribute, value: Value) -> None:
        """A reading that is for another kind of tensor: optional ones have ``->``, lists have functions."""
        wanted = attribute.of_variable(value.name)
        possible = [one for one in ATTRIBUTES if one.of == value.type]
        same = next((one for one in possible if one.member == attribute.member), None)
        readings = quoted(one.of_variable(value.name) for one in possible)
        hint = f"what can be read of it is {readings or 'the value itself'}"
        self.report.error(
            self.span_of_function(call),
            f"'{wanted}' is for an argument of type '{attribute.of}', and '{value.name}' is of type '{value.type}'",
            hint if same is None else f"write '{same.of_variable(value.name)}'",
        )

    def refuse_foreign_reading(self, call: Call, attribute: Attribute, value: Value) -> None:
        """Strides are saved by a call that blames one argument, so only its own gradient may read them."""
        reading = attribute.of_variable(value.name)
        message = f"'{reading}' belongs in the formula of '{value.name}' alone, not in that of {quoted(self.inputs)}"
        if value.is_output:
            message = f"'{reading}' cannot be saved: only the strides of an argument can"
        hint = f"pass '{value.name}' itself and read its strides in a helper function"
        self.report.error(self.span_of_function(call), message, hint)

    def span_of_function(self, call: Call) -> Span:
        """The name of the method or function that is called."""
        function = call.function
        start = function.name_start if isinstance(function, Member) else function.start
        return self.formula.source.part(start, function.end)
