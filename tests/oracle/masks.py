"""Which combinations of wanted and given gradients are tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

_ALL_UP_TO = 4
"""All combinations are tried of so many flags; of more, a few that treat first, last and neighbours unlike."""


def subsets(available: Sequence[bool]) -> Iterator[tuple[bool, ...]]:
    """Every way to take some of what is available, all of it first and nothing last.

    >>> list(subsets([True, False, True]))
    [(True, False, True), (True, False, False), (False, False, True), (False, False, False)]
    """
    places = [place for place, flag in enumerate(available) if flag]
    for choice in _choices(len(places)):
        taken = [False] * len(available)
        for place, flag in zip(places, choice, strict=True):
            taken[place] = flag
        yield tuple(taken)


def _choices(count: int) -> Iterator[tuple[bool, ...]]:
    if count <= _ALL_UP_TO:
        yield from product((True, False), repeat=count)
        return
    first, last = 0, count - 1
    yield (True,) * count
    yield tuple(place != first for place in range(count))
    yield tuple(place != last for place in range(count))
    yield tuple(place % 2 == 0 for place in range(count))
    yield tuple(place == first for place in range(count))
    yield tuple(place == last for place in range(count))
    yield (False,) * count
