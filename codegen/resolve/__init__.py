"""Decides what the forward of an operator saves for its backward, and rewrites formulas over the saved values.

A formula speaks of the forward's arguments and results, ``grad.expand(self.sym_sizes())``; a node keeps only what its
formulas read of them, ``self_sym_sizes``. What is kept for which spelling is a table, `attributes.ATTRIBUTES`. A
resolved formula is a tree whose every expression knows its place in the YAML.

`resolve_formula` resolves one formula, `resolve_derivatives` makes the nodes of a whole file. Nothing here belongs to
one library of operators: schemas and formulas come in, plain records go out.
"""

from .derivatives import resolve_derivatives
from .formula import resolve_formula

__all__ = ["resolve_derivatives", "resolve_formula"]
