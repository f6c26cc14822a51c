"""The names that a C++ header declares, found by brackets and keywords alone.

A compiler would know more, but it costs seconds; for "is this name known" the words in front of the brackets
do. Nothing is expanded: what a macro declares stays unseen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..parse.lexer import Token, TokenKind, tokenize

_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
_NO_FUNCTION = frozenset(
    {"alignas", "decltype", "explicit", "if", "noexcept", "operator", "return", "sizeof", "static_assert"}
    | {"switch", "throw", "while", "for", "requires", "__attribute__"}
)


@dataclass
class Declarations:
    """Names by kind, each with the namespaces and classes around it: ``at::Reduction::None``."""

    functions: set[str] = field(default_factory=set)
    """Functions of a namespace."""
    values: set[str] = field(default_factory=set)
    """Constants, variables and enumerators."""
    types: set[str] = field(default_factory=set)
    """Classes, enumerations and aliases."""
    methods: set[str] = field(default_factory=set)
    """Functions of a class, called on an object, qualified by it: ``at::TensorBase::sym_sizes``."""
    static_methods: set[str] = field(default_factory=set)
    """Functions of a class, called by its name: ``c10::GradMode::is_enabled``."""

    def update(self, other: Declarations) -> None:
        self.functions |= other.functions
        self.values |= other.values
        self.types |= other.types
        self.methods |= other.methods
        self.static_methods |= other.static_methods


@dataclass(frozen=True)
class _Scope:
    """An open brace: a namespace or class with its qualified name, an enumeration, or a body to be passed
    over.
    """

    kind: str
    name: str


def find_declarations(text: str) -> Declarations:
    """The names declared in ``text``, which may be any C++; what is not understood is passed over."""
    tokens = tokenize(_DIRECTIVE.sub("", text), skip_unknown=True)
    found = Declarations()
    scopes: list[_Scope] = [_Scope("namespace", "")]
    statement: list[Token] = []
    skipping = 0
    for token in tokens:
        if skipping:
            skipping += {"{": 1, "}": -1}.get(token.text, 0)
            if skipping == 0:
                statement.clear()
        elif token.text == "{":
            scope = _opened(statement, scopes[-1])
            if scope.kind == "body":
                _record(statement, scopes[-1], found)
                skipping = 1
            else:
                if scope.kind in ("class", "enum"):
                    found.types.add(scope.name)
                scopes.append(scope)
                statement.clear()
        elif token.text == "}":
            _record(statement, scopes[-1], found)
            if len(scopes) > 1:
                scopes.pop()
            statement.clear()
        elif token.text == ";" or (token.text == "," and scopes[-1].kind == "enum"):
            _record(statement, scopes[-1], found)
            statement.clear()
        elif (
            token.text == ":"
            and len(statement) == 1
            and statement[0].text in ("public", "private", "protected")
        ):
            statement.clear()
        else:
            statement.append(token)
    return found


def _join(scope: _Scope, name: str) -> str:
    return f"{scope.name}::{name}" if scope.name else name


def _opened(statement: list[Token], around: _Scope) -> _Scope:
    """What the brace after ``statement`` opens."""
    statement = _without_template(statement)
    words = [token.text for token in statement]
    if "namespace" in words:
        names = [
            token.text for token in statement[words.index("namespace") + 1 :] if token.kind is TokenKind.NAME
        ]
        return _Scope("namespace", "::".join(filter(None, (around.name, *names))))
    if "extern" in words and len(statement) == 2 and statement[1].kind is TokenKind.STRING:
        return _Scope("namespace", around.name)
    for word in ("enum", "class", "struct", "union"):
        if word in words and "(" not in words and "=" not in words:
            name = _class_name(statement[words.index(word) + 1 :])
            return (
                _Scope("enum" if word == "enum" else "class", _join(around, name))
                if name
                else _Scope("body", "")
            )
    return _Scope("body", "")


def _without_template(statement: list[Token]) -> list[Token]:
    """The statement without ``template <...>`` in front, whose ``class T`` declares nothing."""
    if not statement or statement[0].text != "template":
        return statement
    depth = 0
    for position, token in enumerate(statement):
        depth += {"<": 1, ">": -1}.get(token.text, 0)
        if position > 0 and depth == 0:
            return _without_template(statement[position + 1 :])
    return statement


def _class_name(tokens: list[Token]) -> str:
    """The name in ``class TORCH_API Name : public Base``: the last word before a base list or template
    arguments.
    """
    name = ""
    for token in tokens:
        if token.kind is TokenKind.NAME:
            if token.text not in ("class", "struct", "final"):
                name = token.text
        else:
            break
    return name


def _record(statement: list[Token], scope: _Scope, found: Declarations) -> None:
    """Note what one declaration declares."""
    statement = _without_template(statement)
    names = [token for token in statement if token.kind is TokenKind.NAME]
    if not names:
        return
    first = names[0].text
    if scope.kind == "enum":
        enumeration = scope.name.rpartition("::")[0]
        # An enumerator is a member of its enumeration and, unless that is a class, of what is around it too.
        found.values.update((f"{scope.name}::{first}", f"{enumeration}::{first}" if enumeration else first))
        return
    if first == "using":
        if any(token.text == "=" for token in statement):
            found.types.add(_join(scope, names[1].text))
        return
    function = _function_name(statement)
    if function is not None:
        static = any(token.text == "static" for token in statement)
        of_class = found.static_methods if static else found.methods
        (of_class if scope.kind == "class" else found.functions).add(_join(scope, function))
    elif scope.kind == "namespace" and first not in (
        "friend",
        "class",
        "struct",
        "typedef",
        "template",
        "namespace",
    ):
        before_value = [token.text for token in statement]
        end = before_value.index("=") if "=" in before_value else len(before_value)
        last = statement[end - 1]
        if last.kind is TokenKind.NAME and end > 1:
            found.values.add(_join(scope, last.text))


def _function_name(statement: list[Token]) -> str | None:
    """The word before the first bracket that no attribute or macro in capitals owns."""
    position = 0
    while position < len(statement):
        if statement[position].text == "=":
            return None
        if statement[position].text == "(" and position > 0:
            before = statement[position - 1]
            if (
                before.kind is TokenKind.NAME
                and before.text not in _NO_FUNCTION
                and not before.text.isupper()
            ):
                return before.text
            if any(token.text == "operator" for token in statement[:position]):
                return None
            depth = 0
            while position < len(statement):
                depth += {"(": 1, ")": -1}.get(statement[position].text, 0)
                if depth == 0:
                    break
                position += 1
        position += 1
    return None
