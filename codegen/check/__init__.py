"""Judgement over parsed entries: whether their names mean something, and whether their formulas fit their
operators.

`check_entries` is the entry point. It writes every finding into a report and raises nothing for bad input.
"""

from .entries import check_entries

__all__ = ["check_entries"]
