"""Arguments of calls as JSON: what JSON lacks is an object with one key, which tells its type."""

from __future__ import annotations

import math
import re
from typing import Any

import torch

from backbind.graph.fields import Fields, shown, typed
from backbind.graph.file_errors import GraphFileError
from backbind.graph.plain_graph import Reference


def _named(kind: type) -> dict[str, Any]:
    """The constants of torch that are of a type, by their names: ``float32``, ``strided``."""
    return {str(one).removeprefix("torch."): one for one in vars(torch).values() if isinstance(one, kind)}


DTYPES: dict[str, torch.dtype] = _named(torch.dtype)
LAYOUTS: dict[str, torch.layout] = _named(torch.layout)
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_DEVICE = re.compile(r"[a-z]{1,20}(:[0-9]{1,4})?", re.ASCII)


def encode(value: object) -> Any:
    """A value as JSON.

    Raises:
        TypeError: no operator takes a value of its type.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": str(value)}
        case complex():
            return {"complex": [encode(value.real), encode(value.imag)]}
        case Reference(name):
            return {"value": name}
        case list() | tuple():
            return [encode(one) for one in value]
        case torch.dtype():
            return {"dtype": str(value).removeprefix("torch.")}
        case torch.layout():
            return {"layout": str(value).removeprefix("torch.")}
        case torch.device():
            return {"device": str(value)}
    raise TypeError(f"an argument of type {type(value).__name__} cannot be stored")


def decode(value: object) -> Any:
    """The value that was encoded. Raises GraphFileError for what `encode` does not give."""
    if isinstance(value, list):
        return [decode(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise GraphFileError("an argument is an object with more or fewer than one key")
    ((tag, content),) = value.items()
    match tag:
        case "value":
            return Reference(typed(content, str, "the name of a value"))
        case "float":
            return _looked_up(content, _NOT_FINITE, "a number")
        case "complex":
            return _complex(content)
        case "dtype":
            return _looked_up(content, DTYPES, "a dtype")
        case "layout":
            return _looked_up(content, LAYOUTS, "a layout")
        case "device":
            return device(content)
    raise GraphFileError(f"an argument is of the unknown type {shown(tag)}")


def dtype(fields: Fields) -> torch.dtype:
    """The dtype that an object names."""
    found: torch.dtype = _looked_up(fields.any("dtype"), DTYPES, "a dtype")
    return found


def device(value: object) -> torch.device:
    """Raises GraphFileError where torch knows no such type of device."""
    name = typed(value, str, "the name of a device")
    if not _DEVICE.fullmatch(name):
        raise GraphFileError(f"{shown(name)} is no device")
    try:
        return torch.device(name)
    except RuntimeError:
        raise GraphFileError(f"{shown(name)} is no device that this torch knows") from None


def _complex(value: object) -> complex:
    parts = [decode(one) for one in typed(value, list, "a complex number")]
    if len(parts) != 2 or not all(type(one) is float for one in parts):
        raise GraphFileError("a complex number is something else than two numbers")
    return complex(*parts)


def _looked_up(name: object, table: dict[str, Any], what: str) -> Any:
    key = typed(name, str, f"the name of {what}")
    if key not in table:
        raise GraphFileError(f"{shown(key)} is no name of {what} that this torch knows")
    return table[key]
