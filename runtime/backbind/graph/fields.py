"""Reads fields of parsed JSON, and says in words what is wrong with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from backbind.graph.file_errors import GraphFileError

_Type = TypeVar("_Type")

_WORDS = {
    bool: "true or false",
    int: "an integer",
    str: "a string",
    list: "a list",
    dict: "an object",
    float: "a number",
}


class Fields:
    """An object of JSON with exactly the given keys."""

    def __init__(self, value: object, what: str, keys: Sequence[str], optional: Sequence[str] = ()) -> None:
        """``what``: how errors call it.

        Raises:
            GraphFileError: it is something else, or a key is missing or unknown.
        """
        self._values = typed(value, dict, what)
        self._what = what
        for key in keys:
            if key not in self._values:
                raise GraphFileError(f"{what} lacks '{key}'")
        for key in self._values:
            if key not in keys and key not in optional:
                raise GraphFileError(f"{what} has the key {shown(key)}, which this format does not know")

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def any(self, key: str) -> Any:
        return self._values.get(key)

    def get(self, key: str, kind: type[_Type]) -> _Type:
        """The value of a key, which must be of a type."""
        return typed(self._values[key], kind, f"'{key}' of {self._what}")

    def optional(self, key: str, kind: type[_Type]) -> _Type | None:
        """The value of a key, which may be missing."""
        return self.get(key, kind) if key in self._values else None

    def integers(self, key: str) -> list[int]:
        """A list of integers that are not negative."""
        what = f"'{key}' of {self._what}"
        values = [typed(one, int, f"an item of {what}") for one in self.get(key, list)]
        if any(one < 0 for one in values):
            raise GraphFileError(f"{what} has a negative item")
        return values


def typed(value: object, kind: type[_Type], what: str) -> _Type:
    """The value, which must be of a type. A bool is no integer here."""
    if type(value) is not kind:
        raise GraphFileError(f"{what} is {shown(value)} instead of {_WORDS[kind]}")
    return value


def shown(value: object) -> str:
    """A value in an error: the beginning of its text."""
    text = repr(value) if not isinstance(value, dict | list) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
