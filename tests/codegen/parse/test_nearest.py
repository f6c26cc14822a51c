"""Suggestions."""

from __future__ import annotations

import pytest

from codegen.parse.nearest import nearest_name

NAMES = ["self", "sgn", "grad", "cosh", "cos", "mul", "full", "null", "other", "sym_sizes", "at::where"]
SLIPS = [
    ("slef", "self"),
    ("sel", "self"),
    ("selff", "self"),
    ("Grad", "grad"),
    ("cohs", "cosh"),
    ("mull", "mul"),
    ("otehr", "other"),
    ("sym_size", "sym_sizes"),
    ("at::wher", "at::where"),
    ("rgad", "grad"),
    ("frobnicate", None),
    ("xy", None),
    ("self", None),
    ("", None),
]


@pytest.mark.parametrize(("written", "expected"), SLIPS)
def test_nearest(written: str, expected: str | None) -> None:
    assert nearest_name(written, NAMES) == expected
    assert nearest_name(written, list(reversed(NAMES))) == expected
