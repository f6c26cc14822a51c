"""Operator schemas such as ``mul.Tensor(Tensor self, Tensor other) -> Tensor``, read into frozen records.

It is read here, and not through torchgen, because a user's schema needs messages with places, because a torch
of another version must be readable in the same process, and because it takes a tenth of the time. A test
holds every schema of the installed torch against torchgen's own reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

TENSOR_TYPES = frozenset({"Tensor", "Tensor?", "Tensor[]", "Tensor?[]"})
_OPTIONS = (("dtype", "ScalarType"), ("layout", "Layout"), ("device", "Device"), ("pin_memory", "bool"))


class SchemaSyntaxError(Exception):
    """A text that is no schema: what was expected at ``text[start:end]``."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: ``Scalar alpha=1`` behind the ``*``."""

    name: str
    type: str
    """The type without aliasing and length: ``Tensor``, ``int[]?``, ``Tensor?[]``."""
    keyword_only: bool
    written: bool
    """Whether the operator writes into it, ``Tensor(a!)``."""
    has_default: bool = False

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor or a list of tensors, so that a gradient for it can exist."""
        return is_tensor_type(self.type)

    @property
    def is_list(self) -> bool:
        return "[" in self.type


@dataclass(frozen=True, slots=True)
class Return:
    """One output; the name is None if the schema gives none."""

    name: str | None
    type: str
    shared: bool
    """Whether it shares its memory with an argument that the operator does not change, ``Tensor(a)``."""

    @property
    def is_tensor(self) -> bool:
        return is_tensor_type(self.type)

    @property
    def is_list(self) -> bool:
        return "[" in self.type


@dataclass(frozen=True)
class Schema:
    """A schema as written and what it says."""

    text: str
    name: str
    """``add_`` in ``add_.Tensor(...)``."""
    overload: str
    """``Tensor`` in ``add_.Tensor(...)``, or nothing."""
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]

    @property
    def full_name(self) -> str:
        """``add_.Tensor``"""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def is_inplace(self) -> bool:
        """Whether it changes its first argument: ``add_``, ``__iand__``."""
        if self.name.startswith("__") and self.name.endswith("__"):
            return self.name.startswith("__i")
        return self.name.endswith("_")

    @property
    def is_out(self) -> bool:
        """Whether it writes into arguments of the caller, ``Tensor(a!) out``."""
        return any(argument.keyword_only and argument.written for argument in self.arguments)

    @property
    def is_view(self) -> bool:
        """Whether an output is a view of an argument, ``Tensor(a)``."""
        return any(output.shared for output in self.returns)

    @property
    def has_symint(self) -> bool:
        return any("SymInt" in argument.type for argument in self.arguments)

    @cached_property
    def formula_arguments(self) -> tuple[Argument, ...]:
        """The arguments by the names that formulas know: dtype, layout, device and pin_memory are one,
        ``options``.
        """
        arguments = self.arguments
        for start in range(len(arguments) - len(_OPTIONS) + 1):
            group = arguments[start : start + len(_OPTIONS)]
            if all(
                argument.keyword_only and argument.name == name and argument.type.removesuffix("?") == type_
                for argument, (name, type_) in zip(group, _OPTIONS, strict=True)
            ):
                options = Argument("options", "TensorOptions", True, False)
                return (*arguments[:start], options, *arguments[start + len(_OPTIONS) :])
        return arguments

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """The outputs as formulas know them: named by the schema, else ``result`` or ``result0`` ..."""
        taken = {argument.name for argument in self.arguments}
        names: list[str] = []
        for position, output in enumerate(self.returns):
            if self.is_inplace or output.name is None:
                names.append("result" if len(self.returns) == 1 else f"result{position}")
            else:
                names.append(f"{output.name}_return" if output.name in taken else output.name)
        return tuple(names)


_NAME = re.compile(r"\s*(?:\w+::)?(?P<name>[A-Za-z_]\w*)(?:\.(?P<overload>\w+))?\s*")
_ARGUMENT = re.compile(
    r"(?P<type>[A-Za-z_]\w*(?:\([^()]*\))?(?:\?|\[\d*\])*)\s+(?P<name>[A-Za-z_]\w*)\s*(?:=\s*(?P<default>.+))?",
    re.DOTALL,
)
_RETURN = re.compile(r"(?P<type>[A-Za-z_]\w*(?:\([^()]*\))?(?:\?|\[\d*\])*)(?:\s+(?P<name>[A-Za-z_]\w*))?")
_ALIAS = re.compile(r"\([^()]*\)")
_LENGTH = re.compile(r"\[\d+\]")


def is_tensor_type(type_: str) -> bool:
    return type_ in TENSOR_TYPES


def operator_name(text: str) -> tuple[str, int, int]:
    """The name with which a schema begins, right or wrong, and its place: ``tanh``, 0, 4."""
    found = _NAME.match(text)
    if found is None:
        return text.strip(), 0, len(text)
    return found["name"], found.start("name"), found.end("name")


def parse_schema(text: str) -> Schema:
    """Read one schema.

    Raises:
        SchemaSyntaxError: the text is no schema.
    """
    head = _NAME.match(text)
    if head is None:
        raise SchemaSyntaxError("expected the operator's name", 0, len(text))
    position = head.end()
    if not text.startswith("(", position):
        raise SchemaSyntaxError(
            "expected '(' and the arguments after the operator's name", position, len(text)
        )
    end = _closing(text, position)
    if end is None:
        raise SchemaSyntaxError("this '(' is never closed", position, position + 1)
    arguments = _arguments(text, position + 1, end)
    returns = _returns(text, end + 1)
    return Schema(text, head["name"], head["overload"] or "", arguments, returns)


def _arguments(text: str, start: int, end: int) -> tuple[Argument, ...]:
    arguments: list[Argument] = []
    keyword_only = False
    for first, last in _items(text, start, end):
        item = text[first:last]
        if item == "*" and not keyword_only:
            keyword_only = True
            continue
        found = _ARGUMENT.fullmatch(item)
        if found is None:
            message = "expected an argument, '<type> <name>' or '<type> <name>=<default>'"
            raise SchemaSyntaxError(message, first, max(last, first + 1))
        if any(argument.name == found["name"] for argument in arguments):
            raise SchemaSyntaxError(f"a second argument '{found['name']}'", first, last)
        type_ = found["type"]
        arguments.append(
            Argument(
                found["name"], _plain_type(type_), keyword_only, "!" in type_, found["default"] is not None
            )
        )
    return tuple(arguments)


def _returns(text: str, position: int) -> tuple[Return, ...]:
    arrow = re.compile(r"\s*->\s*").match(text, position)
    if arrow is None:
        raise SchemaSyntaxError("expected '->' and the outputs after the arguments", position, len(text))
    start, end = arrow.end(), len(text.rstrip())
    if text.startswith("(", start):
        closing = _closing(text, start)
        if closing is None:
            raise SchemaSyntaxError("this '(' is never closed", start, start + 1)
        if closing + 1 != end:
            raise SchemaSyntaxError("the schema should end here", closing + 1, end)
        start, end = start + 1, closing
        if not text[start:end].strip():
            return ()
    returns: list[Return] = []
    for first, last in _items(text, start, end):
        found = _RETURN.fullmatch(text[first:last])
        if found is None:
            raise SchemaSyntaxError(
                "expected an output, '<type>' or '<type> <name>'", first, max(last, first + 1)
            )
        type_ = found["type"]
        returns.append(Return(found["name"], _plain_type(type_), "(" in type_ and "!" not in type_))
    if not returns:
        raise SchemaSyntaxError(
            "expected the outputs after '->'; an operator without outputs ends in '-> ()'", end, end
        )
    return tuple(returns)


def _plain_type(text: str) -> str:
    return _LENGTH.sub("[]", _ALIAS.sub("", text))


def _closing(text: str, opening: int) -> int | None:
    depth = 0
    for position in _outside_strings(text, opening, len(text)):
        if text[position] in "([":
            depth += 1
        elif text[position] in ")]":
            depth -= 1
            if depth == 0:
                return position
    return None


def _items(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The places of the comma-separated items of ``text[start:end]``, without blanks around them."""
    if not text[start:end].strip():
        return []
    cuts = [start - 1]
    depth = 0
    for position in _outside_strings(text, start, end):
        if text[position] in "([":
            depth += 1
        elif text[position] in ")]":
            depth -= 1
        elif text[position] == "," and depth == 0:
            cuts.append(position)
    cuts.append(end)
    items: list[tuple[int, int]] = []
    for before, after in pairwise(cuts):
        item = text[before + 1 : after]
        first = before + 1 + len(item) - len(item.lstrip())
        items.append((first, max(first, before + 1 + len(item.rstrip()))))
    return items


_PLAIN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[()\[\],]""")


def _outside_strings(text: str, start: int, end: int) -> list[int]:
    """Where brackets and commas stand that are not inside a string, such as a default value."""
    return [found.start() for found in _PLAIN.finditer(text, start, end) if found.group() in "()[],"]
