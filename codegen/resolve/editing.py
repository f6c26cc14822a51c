"""Puts other code into the places of parts of a formula: in its tree, and in its text, whose layout stays."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..parse.expression import Expression, placed, replaced
from ..parse.expression_parser import parse_expression
from .records import Edit


@dataclass
class Editing:
    """Collects the edits of one formula, in the order of its text."""

    root: Expression
    edits: list[Edit] = field(default_factory=list)
    _replacements: dict[int, Expression] = field(default_factory=dict)

    def put(self, node: Expression, text: str) -> None:
        """Let ``text`` be compiled in the place of ``node``, which stays the place that it points to."""
        self.edits.append(Edit(node.start, node.end, text))
        self._replacements[id(node)] = placed(parse_expression(text), node.start, node.end)

    def edited_root(self) -> Expression:
        """The tree with all edits made in it."""
        return replaced(self.root, self._replacements)
