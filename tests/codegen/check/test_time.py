"""The time that a check takes grows with the file, not with its square: shown by counts of calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from ..conftest import Judge

ENTRIES = {
    "unknown_operator": "- name: nosuch{0}(Tensor self) -> Tensor\n  self: grad * othr{0}\n",
    "unknown_names": "- name: sinh(Tensor self) -> Tensor\n  self: grd * slef.csoh()\n",
    "second_entry": "- name: sinh(Tensor self) -> Tensor\n  self: grad * self.cosh()\n",
    "broken_formula": "- name: sinh(Tensor self) -> Tensor\n  self: grad * (self.cosh()\n",
    "no_name": "- nmae: sinh(Tensor self) -> Tensor\n  self: grad\n",
    "notice": "- name: sinh(Tensor self) -> Tensor\n  self: non_differentiable\n",
}


def calls_of(function: Callable[[], object]) -> int:
    """How many Python functions are entered, generators resumed, and built-in functions called."""
    count = 0

    def see(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_twice_the_entries_take_twice_the_calls(entry: str, judge: Judge) -> None:
    def count(entries: int) -> int:
        text = "".join(entry.format(number) for number in range(entries)).encode()
        return calls_of(lambda: judge(text, "long.yaml").render())

    # The first call fills what is found once.
    count(1)
    few, many = count(150), count(300)
    assert many < 2.1 * few
