"""Tokens of C++: enough for derivative formulas and for the declarations in torch's headers."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple


class TokenKind(Enum):
    """What sort of word a token is."""

    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    CHARACTER = "character"
    PUNCTUATION = "punctuation"
    END = "end"


class Token(NamedTuple):
    """One word of the text, at ``text[start:end]``."""

    kind: TokenKind
    text: str
    start: int
    end: int


class LexError(Exception):
    """Text that is no C++ token, with its place and what to do about it."""

    def __init__(self, message: str, start: int, end: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.hint = hint


# The alternatives are ordered: comments before '/', numbers before '.', long operators before their prefixes.
_TOKEN = re.compile(
    r"""
    (?P<blank>      \s+ | /\*.*?\*/ | //[^\n]* )
  | (?P<name>       [A-Za-z_]\w* )
  | (?P<number>     (?: 0[xX][0-9a-fA-F']+ | 0[bB][01']+
                      | (?: \d[\d']* \.? [\d']* | \.\d[\d']* ) (?: [eE][+-]?\d+ )? ) [A-Za-z_]* )
  | (?P<string>     "(?: [^"\\\n] | \\. )*" )
  | (?P<character>  '(?: [^'\\\n] | \\. )+' )
  | (?P<punctuation> \.\.\. | ->\* | :: | -> | \+\+ | -- | <= | >= | == | != | && | \|\|
                   | [-+*/%&|^]= | [-+*/%&|^~!<>=?:;,.(){}\[\]\#] )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_KINDS = {kind.value: kind for kind in TokenKind}


def tokenize(text: str, *, skip_unknown: bool = False) -> list[Token]:
    """All tokens of ``text`` and one END token; blanks and comments are left out.

    ``>>`` is two tokens, because it may close two template argument lists, and nobody shifts tensors.
    With ``skip_unknown`` whatever is no token is passed over, as a reader of other people's headers needs.

    Raises:
        LexError: an unterminated literal or comment, or a character that C++ does not use.
    """
    tokens: list[Token] = []
    position, length, match = 0, len(text), _TOKEN.match
    while position < length:
        found = match(text, position)
        if found is None:
            if not skip_unknown:
                raise _explain(text, position)
            position += 1
            continue
        end, group, word = found.end(), found.lastgroup, found.group()
        if word == "/" and text.startswith("/*", position) and not skip_unknown:
            raise LexError("this comment is never closed", position, length, "add */ at its end")
        if group is not None and group != "blank":
            tokens.append(Token(_KINDS[group], word, position, end))
        position = end
    tokens.append(Token(TokenKind.END, "", length, length))
    return tokens


def _explain(text: str, position: int) -> LexError:
    character = text[position]
    if character in "\"'":
        return LexError(
            f"the literal that starts here has no closing {character}",
            position,
            len(text),
            f"add {character} at its end",
        )
    shown = character if character.isprintable() else f"\\u{ord(character):04x}"
    return LexError(f"'{shown}' means nothing in a C++ expression", position, position + 1)
