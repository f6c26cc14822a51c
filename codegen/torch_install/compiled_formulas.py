"""What a torch was compiled from: which formulas its derivatives had, as far as one must know to see an edited one.

The YAML that a torch brings can be edited, its compiled code cannot. Where backbind calls that code, a formula must be
the one that was compiled. ``compiled/`` holds a digest of everything in the derivatives of each release that can be
generated for; ``tools/record_formulas.py`` writes it from a torch that nobody has touched.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..parse.lexer import LexError, tokenize
from .locate import TorchInstall

FOLDER = Path(__file__).parent / "compiled"


@dataclass(frozen=True)
class CompiledFormulas:
    """The formulas of one release."""

    digests: frozenset[str]

    def has_node(self, schema: str, key: str) -> bool:
        """Whether there is an entry for an operator under a dispatch key."""
        return node_digest(schema, key) in self.digests

    def differentiates(self, schema: str, key: str, argument: str) -> bool:
        """Whether an argument has a gradient."""
        return input_digest(schema, key, argument) in self.digests

    def has_formula(self, schema: str, key: str, names: Iterable[str], text: str) -> bool:
        """Whether this very formula, but for blanks and comments, stands there for these names."""
        return formula_digest(schema, key, names, text) in self.digests

    def has_differentiability(self, schema: str, text: str) -> bool:
        """Whether the entry says this of the differentiability of its outputs."""
        return differentiability_digest(schema, text) in self.digests


def node_digest(schema: str, key: str) -> str:
    return _digest("node", schema, key)


def input_digest(schema: str, key: str, argument: str) -> str:
    return _digest("input", schema, key, argument)


def formula_digest(schema: str, key: str, names: Iterable[str], text: str) -> str:
    return _digest("formula", schema, key, ", ".join(names), normalised(text))


def differentiability_digest(schema: str, text: str) -> str:
    return _digest("differentiability", schema, normalised(text))


def normalised(text: str) -> str:
    """A formula's tokens, with one blank between two.

    >>> normalised("grad*(self.cos( ).conj())")
    'grad * ( self . cos ( ) . conj ( ) )'
    """
    try:
        return " ".join(token.text for token in tokenize(text)).rstrip()
    except LexError:
        return " ".join(text.split())


def load_compiled_formulas(install: TorchInstall) -> CompiledFormulas | None:
    """What is known of the release of ``install``, or None."""
    file = FOLDER / f"{install.version}.json"
    if not file.is_file():
        return None
    return CompiledFormulas(frozenset(json.loads(file.read_text(encoding="utf-8"))))


def hash_of_derivatives(install: TorchInstall) -> str:
    """Tells one content of the derivatives from another."""
    return hashlib.sha256(install.derivatives_yaml.read_bytes()).hexdigest()[:16]


def is_edited(install: TorchInstall) -> bool:
    """Whether the derivatives are known not to be the file that was installed: the wheel's record says otherwise."""
    content = base64.urlsafe_b64encode(hashlib.sha256(install.derivatives_yaml.read_bytes()).digest())
    expected = f"sha256={content.decode().rstrip('=')}"
    path = install.derivatives_yaml.relative_to(install.torchgen.parent).as_posix()
    for record in install.torchgen.parent.glob("torch-*.dist-info/RECORD"):
        for line in record.read_text(encoding="utf-8").splitlines():
            name, *facts = line.split(",")
            if name == path and facts and facts[0].startswith("sha256="):
                return facts[0] != expected
    return False


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]
