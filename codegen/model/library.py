"""Whose derivatives code is generated for: what the model is built from, and where emitters take names from.

torch is one library (``codegen/torch_library.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..torch_install.operators import Operators
from .helpers import Helper
from .link_facts import LinkFacts


@dataclass(frozen=True)
class Library:
    """Operators with derivatives, and what the code that is generated for them is called and stands among."""

    name: str
    """What people call it: ``torch``."""
    version: str
    """``2.13.0``"""
    yaml_name: str
    """What people call the file with its derivatives: ``derivatives.yaml``."""
    namespace: str
    """Of the generated C++, and of the operators in the dispatcher: ``backbind``."""
    python_module: str
    """The module of the generated operators: ``backbind.ops``."""
    structs: str
    """The C++ namespace of the node structs: ``torch::autograd::generated``."""
    formula_namespaces: tuple[str, ...]
    """The C++ namespaces whose names formulas use without saying so: ``at``."""
    operators: Operators = field(repr=False)
    """Every operator that formulas may call, and whose derivatives may be written."""
    link_facts: LinkFacts = field(repr=False)
    """Which functions of formulas link."""
    helpers: Mapping[str, Helper] = field(repr=False)
    """The helper functions that ``csrc/formulas`` has for its formulas."""
    ask_requires_grad: Mapping[str, int] = field(repr=False)
    """Helper functions that ask an argument whether it requires grad, and which argument that is."""
    preconditions: Path
    """The table of what its operators need beside what follows by rule."""
    preconditions_name: str
    """What messages call that table."""
