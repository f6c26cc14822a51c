"""Which of the functions that formulas call can be linked from outside their library."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LinkFacts:
    """What can be linked."""

    declared: frozenset[str]
    """Every helper (function or constant) that formulas may call."""
    callable: frozenset[str]
    """Those that link from outside torch."""


NOTHING_LINKS = LinkFacts(frozenset(), frozenset())
"""Where only delegates are made, and nobody asked."""
