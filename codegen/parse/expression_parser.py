"""The parser of formulas: C++ expressions by operator precedence (Pratt's method).

It covers what derivative formulas are made of: operators, conditionals, calls, members, indices, brace lists,
qualified and templated names, literals, C casts of built-in types, and short lambdas. Assignments, ``new``,
statements and the rest of C++ are refused with a message.
"""

from __future__ import annotations

from typing import NoReturn

from .brackets import CLOSING, FormulaSyntaxError, check_brackets
from .expression import (
    Binary,
    Braces,
    Call,
    Cast,
    Conditional,
    Expression,
    Index,
    Lambda,
    Literal,
    Member,
    Name,
    Unary,
)
from .lexer import LexError, Token, TokenKind, tokenize

MAX_DEPTH = 60
"""How deeply brackets and operators may nest: stock formulas reach 8, and Python's stack bears this many."""

PRECEDENCE = {
    "||": 2,
    "&&": 3,
    "|": 4,
    "^": 5,
    "&": 6,
    "==": 7,
    "!=": 7,
    "<": 8,
    ">": 8,
    "<=": 8,
    ">=": 8,
    "+": 10,
    "-": 10,
    "*": 11,
    "/": 11,
    "%": 11,
}
"""Binary operators by how tightly they bind; all of them group to the left."""

CONDITIONAL = 1
PREFIX_OPERATORS = frozenset("+-!~*&")
KEYWORD_LITERALS = frozenset({"true", "false", "nullptr"})
BUILTIN_TYPES = frozenset(
    {"bool", "char", "double", "float", "int", "int32_t", "int64_t", "long", "size_t", "uint8_t", "unsigned"}
)
CASTS = frozenset({"const_cast", "dynamic_cast", "reinterpret_cast", "static_cast"})
TEMPLATES = CASTS | frozenset(
    {
        "ArrayRef",
        "IListRef",
        "List",
        "OptionalArray",
        "OptionalArrayRef",
        "SmallVector",
        "array",
        "complex",
        "fmap",
        "get",
    }
    | {"make_tuple", "optional", "pair", "tuple", "vector"}
)
"""Names after which ``<`` may open template arguments instead of comparing."""
OPERATOR_SLIPS = {
    "=": "a formula is a value, so nothing is assigned in it; use == to compare",
    "and": "write &&",
    "or": "write ||",
    "not": "write !",
    "return": "a formula is a value: leave out 'return' and ';'",
    ";": "a formula is one value: leave out ';'",
    "if": "write condition ? a : b",
    "else": "write condition ? a : b",
    "**": "write pow(a, b)",
}


def parse_expression(text: str) -> Expression:
    """The tree of ``text``.

    Raises:
        FormulaSyntaxError: the text is no expression, or brackets do not match.
    """
    try:
        tokens = tokenize(text)
    except LexError as error:
        raise FormulaSyntaxError(error.message, error.start, error.end, error.hint) from error
    if len(tokens) == 1:
        raise FormulaSyntaxError(
            "the formula is empty", 0, 0, 'write an expression, or not_implemented("name")'
        )
    check_brackets(tokens)
    parser = _Parser(text, tokens)
    root = parser.expression(0)
    if parser.token.kind is not TokenKind.END:
        parser.fail_after_operand()
    return root


class _Parser:
    """One pass over the tokens; each method reads one construct and leaves `token` behind it."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.position = 0
        self.token = tokens[0]
        self.depth = 0

    # Tokens

    def advance(self) -> Token:
        taken = self.token
        self.position += 1
        self.token = self.tokens[min(self.position, len(self.tokens) - 1)]
        return taken

    @property
    def end(self) -> int:
        """Where what was read last ends, closing brackets included."""
        return self.tokens[self.position - 1].end

    def at(self, text: str) -> bool:
        # A string literal's text starts with its quote, so it never equals an operator.
        return self.token.text == text

    def expect(self, text: str, after: str) -> Token:
        if not self.at(text):
            self.fail(f"expected '{text}' after {after}")
        return self.advance()

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        place = self.token if token is None else token
        if place.kind is TokenKind.END:
            message = f"{message}, but the formula ends here"
        elif message.startswith("expected"):
            message = f"{message}, not '{place.text}'"
        raise FormulaSyntaxError(message, place.start, place.end, OPERATOR_SLIPS.get(place.text))

    def fail_after_operand(self) -> NoReturn:
        """A complete expression is followed by something that cannot follow it."""
        token = self.token
        if token.kind is TokenKind.PUNCTUATION and token.text not in CLOSING:
            hint = OPERATOR_SLIPS.get(token.text)
            raise FormulaSyntaxError(f"'{token.text}' cannot stand here", token.start, token.end, hint)
        self.fail("expected an operator")

    # Expressions

    def expression(self, minimum: int) -> Expression:
        """An expression whose operators bind at least as tightly as ``minimum``."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            place = self.token
            hint = "write a helper function and call it"
            raise FormulaSyntaxError(f"more than {MAX_DEPTH} levels of nesting", place.start, place.end, hint)
        start = self.token.start
        left = self.prefix()
        while True:
            operator = self.token.text
            precedence = PRECEDENCE.get(operator) if self.token.kind is TokenKind.PUNCTUATION else None
            if precedence is not None and precedence >= minimum:
                taken = self.advance()
                if operator == "*" and self.at("*") and self.token.start == taken.end:
                    message, hint = "C++ has no operator '**'", OPERATOR_SLIPS["**"]
                    raise FormulaSyntaxError(message, taken.start, self.token.end, hint)
                right = self.expression(precedence + 1)
                left = Binary(start, self.end, operator, left, right)
            elif operator == "?" and minimum <= CONDITIONAL:
                self.advance()
                positive = self.expression(0)
                self.expect(":", "the first branch of '?'")
                negative = self.expression(CONDITIONAL)
                left = Conditional(start, self.end, left, positive, negative)
            else:
                self.depth -= 1
                return left

    def prefix(self) -> Expression:
        token = self.token
        if token.kind is TokenKind.PUNCTUATION and token.text in PREFIX_OPERATORS:
            self.advance()
            self.depth += 1
            if self.depth > MAX_DEPTH:
                self.fail(f"more than {MAX_DEPTH} levels of nesting", token)
            operand = self.prefix()
            self.depth -= 1
            return Unary(token.start, self.end, token.text, operand)
        return self.postfix(self.primary(), token.start)

    def postfix(self, left: Expression, start: int) -> Expression:
        """What is called, indexed or asked for members; it begins at ``start``, with a bracket where it has one."""
        while self.token.kind is TokenKind.PUNCTUATION:
            operator = self.token.text
            if operator == "(":
                arguments, end = self.bracketed("(")
                left = Call(start, end, left, arguments)
            elif operator == "[":
                self.advance()
                position = self.expression(0)
                end = self.expect("]", "an index").end
                left = Index(start, end, left, position)
            elif operator in (".", "->"):
                left = self.member(left, start)
            elif operator == "{" and isinstance(left, Name):
                items, end = self.bracketed("{")
                left = Braces(start, end, items, left)
            else:
                break
        return left

    def member(self, receiver: Expression, start: int) -> Member:
        arrow = self.advance().text == "->"
        if self.token.kind is not TokenKind.NAME:
            self.fail("expected the name of a member")
        name = self.advance()
        template_arguments, end = self.template_arguments(always=True)
        return Member(start, end or name.end, receiver, name.text, name.start, arrow, template_arguments)

    def primary(self) -> Expression:
        token = self.token
        if token.kind is TokenKind.NAME:
            if token.text in KEYWORD_LITERALS:
                self.advance()
                return Literal(token.start, token.end, token.text)
            if token.text in OPERATOR_SLIPS:
                self.fail("expected a value")
            return self.name()
        if token.kind is TokenKind.STRING:
            return self.string()
        if token.kind in (TokenKind.NUMBER, TokenKind.CHARACTER):
            self.advance()
            return Literal(token.start, token.end, token.text)
        if token.text == "(":
            return self.parenthesised()
        if token.text == "{":
            items, end = self.bracketed("{")
            return Braces(token.start, end, items)
        if token.text == "[":
            return self.lambda_function()
        if token.text != "::":
            self.fail("expected a value")
        return self.name()

    def string(self) -> Literal:
        """Adjacent string literals are one."""
        first = last = self.advance()
        while self.token.kind is TokenKind.STRING:
            last = self.advance()
        return Literal(first.start, last.end, self.text[first.start : last.end])

    def parenthesised(self) -> Expression:
        opener = self.advance()
        inner = self.expression(0)
        if self.at(","):
            self.fail("expected ')'")
        self.expect(")", "an expression in brackets")
        if isinstance(inner, Name) and inner.path[-1] in BUILTIN_TYPES and self.starts_operand():
            operand = self.prefix()
            return Cast(opener.start, self.end, inner, operand)
        return inner

    def starts_operand(self) -> bool:
        literal = (TokenKind.NAME, TokenKind.NUMBER, TokenKind.STRING, TokenKind.CHARACTER)
        return self.token.kind in literal or self.token.text in ("(", "!", "~")

    def bracketed(self, opener: str) -> tuple[tuple[Expression, ...], int]:
        """The comma-separated expressions in brackets and where the closing bracket ends."""
        self.advance()
        closer = CLOSING[opener]
        items: list[Expression] = []
        if not self.at(closer):
            items.append(self.expression(0))
            while self.at(","):
                self.advance()
                items.append(self.expression(0))
        if not self.at(closer):
            self.fail(f"expected ',' or '{closer}'")
        return tuple(items), self.advance().end

    # Names

    def name(self) -> Name:
        start = self.token.start
        if self.at("::"):
            self.advance()
        path: list[str] = []
        template_arguments: str | None = None
        while True:
            if self.token.kind is not TokenKind.NAME:
                self.fail("expected a name")
            part = self.advance()
            path.append(part.text)
            end = part.end
            template = part.text in TEMPLATES or path[0] == "std"
            template_arguments, template_end = self.template_arguments(always=template)
            end = template_end or end
            if not self.at("::"):
                return Name(start, end, tuple(path), template_arguments)
            self.advance()

    def template_arguments(self, *, always: bool) -> tuple[str | None, int | None]:
        """The text of ``<...>`` and its end, if `token` opens one: the angles balance and an operand could
        follow.

        ``a < b`` looks alike up to its ``b``; a template argument list must close and be called or qualified.
        """
        if not always or not self.at("<"):
            return None, None
        depth, position = 0, self.position
        while position < len(self.tokens):
            token = self.tokens[position]
            if token.text == "<":
                depth += 1
            elif token.text == ">":
                depth -= 1
                if depth == 0:
                    break
            elif token.kind not in (TokenKind.NAME, TokenKind.NUMBER) and token.text not in (
                "::",
                ",",
                "*",
                "&",
            ):
                return None, None
            position += 1
        following = self.tokens[min(position + 1, len(self.tokens) - 1)]
        if depth != 0 or following.text not in ("(", "{", "::"):
            return None, None
        inside = self.text[self.token.end : self.tokens[position].start].strip()
        end = self.tokens[position].end
        self.position = position
        self.advance()
        return inside, end

    # Lambdas

    def lambda_function(self) -> Lambda:
        start = self.advance().start
        while not self.at("]"):
            if self.token.kind is TokenKind.END:
                self.fail("expected ']' after the captures of a lambda")
            self.advance()
        self.advance()
        if not self.at("("):
            self.fail("expected the parameters of a lambda, '(...)',")
        bound = self.parameters()
        while not self.at("{"):
            if self.token.kind is TokenKind.END or self.token.text in CLOSING or self.token.text in ",;":
                self.fail("expected the body of a lambda, '{ return ...; }',")
            self.advance()
        self.advance()
        body: list[Expression] = []
        while not self.at("}"):
            body.append(self.statement(bound))
        end = self.advance().end
        return Lambda(start, end, tuple(bound), tuple(body))

    def parameters(self) -> list[str]:
        """The parameter names: of each parameter the last name, if its type comes before it."""
        self.advance()
        names: list[str] = []
        last: Token | None = None
        while True:
            token = self.advance()
            if token.kind is TokenKind.END:
                self.fail("expected ')' after the parameters of a lambda", token)
            if token.text in (",", ")"):
                if last is not None:
                    names.append(last.text)
                last = None
                if token.text == ")":
                    return names
            elif token.kind is TokenKind.NAME:
                last = token

    def statement(self, bound: list[str]) -> Expression:
        """``return value;``, ``value;`` or ``auto name = value;``, of which the value is kept."""
        if self.at("return"):
            self.advance()
        elif self.at("auto") or self.at("const"):
            while self.token.kind is TokenKind.NAME or self.at("&"):
                last = self.advance()
            bound.append(last.text)
            self.expect("=", "the name of a variable")
        value = self.expression(0)
        self.expect(";", "a statement")
        return value
