"""The name that somebody probably meant: the one place for suggestions in Python.

What is compiled has the same rule in csrc/python/suggest.cpp, and a test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


def nearest_name(written: str, candidates: Iterable[str]) -> str | None:
    """The candidate with the fewest slips between it and ``written``, if they are few for a name of that
    length.

    A slip is a character too many, missing, wrong, or swapped with its neighbour. People seldom miss the
    first letter, so a candidate with another one must be a single slip away. Equal candidates are settled by
    the alphabet, so that a message never depends on the order of a set.

    >>> nearest_name("slef", ["grad", "self", "sgn"])
    'self'
    >>> nearest_name("frobnicate", ["self", "grad"])
    """
    limit = 1 if len(written) < 5 else 2 if len(written) < 13 else 3
    letters = _letters(written)
    best: tuple[int, bool, bool, str] | None = None
    for candidate in candidates:
        if candidate == written or abs(len(candidate) - len(written)) > limit:
            continue
        # A slip brings in one letter and takes out one at most. That rules out most names at little cost.
        theirs = _letters(candidate)
        if (letters & ~theirs).bit_count() > limit or (theirs & ~letters).bit_count() > limit:
            continue
        slips = _slips(written.lower(), candidate.lower(), limit)
        other_start = candidate[:1].lower() != written[:1].lower()
        if slips is None or (other_start and slips > 1):
            continue
        rank = (slips, other_start, len(candidate) != len(written), candidate)
        if best is None or rank < best:
            best = rank
            limit = slips
    return None if best is None else best[-1]


@lru_cache(maxsize=1 << 14)
def _letters(name: str) -> int:
    """The letters of a name as a set of bits; letters that share a bit only make the set smaller."""
    bits = 0
    for character in name.lower():
        bits |= 1 << (ord(character) & 63)
    return bits


def _slips(left: str, right: str, limit: int) -> int | None:
    """The edit distance with swaps of neighbours; None if it is more than ``limit``."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, character in enumerate(left, 1):
        current = [i]
        for j, other in enumerate(right, 1):
            if abs(i - j) > limit:
                current.append(limit + 1)
                continue
            cost = min(row[j] + 1, current[j - 1] + 1, row[j - 1] + (character != other))
            if i > 1 and j > 1 and character == right[j - 2] and left[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return None
        before, row = row, current
    return row[-1] if row[-1] <= limit else None


def did_you_mean(written: str, candidates: Iterable[str]) -> str | None:
    """A hint with the nearest name, if there is one."""
    found = nearest_name(written, candidates)
    return None if found is None else did_you_mean_one_of([found])


def did_you_mean_one_of(names: Iterable[str]) -> str:
    """A hint with names that were found otherwise: ``did you mean 'self', 'other'?``."""
    return f"did you mean {quoted(names)}?"


def quoted(names: Iterable[str]) -> str:
    """Names for a message: ``'self', 'other'``."""
    return ", ".join(f"'{name}'" for name in names)
