"""JSON of a file that anybody may have written: what is not said by one text in one way is refused."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from backbind.graph.file_errors import GraphFileError

MAX_INTEGER = 2**63 - 1


def dump(value: object) -> str:
    """The one text of a value: ASCII, keys in order, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def parse(text: str) -> Any:
    """Raises GraphFileError for everything that `dump` never writes, such as a key that occurs twice; RecursionError
    where it is nested too deeply.
    """
    try:
        return json.loads(
            text,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        raise GraphFileError(f"its structure is no JSON: {error}") from None


def _integer(text: str) -> int:
    # Long ones are not even converted.
    if len(text) > 20 or not -MAX_INTEGER - 1 <= int(text) <= MAX_INTEGER:
        raise GraphFileError(f"the integer {text[:24]} has more than 64 bits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise GraphFileError(f"the number {text[:24]} is too large")
    return value


def _constant(text: str) -> NoReturn:
    raise GraphFileError(f"{text} is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise GraphFileError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return found
