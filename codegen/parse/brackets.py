"""Unbalanced brackets: found before parsing, since only the whole text shows which bracket is alone."""

from __future__ import annotations

from .lexer import Token, TokenKind

CLOSING = {"(": ")", "[": "]", "{": "}"}


class FormulaSyntaxError(Exception):
    """A formula that is no expression: what is wrong at ``text[start:end]`` and what to do."""

    def __init__(self, message: str, start: int, end: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.hint = hint


def check_brackets(tokens: list[Token]) -> None:
    """Refuse tokens whose brackets do not match.

    Raises:
        FormulaSyntaxError: the bracket that is alone.
    """
    opened: list[Token] = []
    for token in tokens:
        if token.kind is not TokenKind.PUNCTUATION:
            continue
        if token.text in CLOSING:
            opened.append(token)
        elif token.text in (")", "]", "}"):
            if not opened:
                message = f"this '{token.text}' closes nothing"
                raise FormulaSyntaxError(
                    message, token.start, token.end, "remove it, or open a bracket before"
                )
            opener = opened.pop()
            wanted = CLOSING[opener.text]
            if wanted != token.text:
                message = f"expected '{wanted}' before this '{token.text}': '{opener.text}' is still open"
                raise FormulaSyntaxError(message, token.start, token.end)
    if opened:
        last = opened[-1]
        message = f"this '{last.text}' is never closed"
        raise FormulaSyntaxError(message, last.start, last.end, f"add '{CLOSING[last.text]}' where it ends")
