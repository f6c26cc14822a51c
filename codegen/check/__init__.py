"""Judgement over parsed entries: whether their names mean something, and whether their formulas fit their
operators.

`check_entries` is the entry point; `check_compiled` then holds what it found good against what torch was compiled with.
Both write every finding into a report and raise nothing for bad input.
"""

from .compiled import check_compiled
from .entries import JudgedEntry, check_entries

__all__ = ["JudgedEntry", "check_compiled", "check_entries"]
