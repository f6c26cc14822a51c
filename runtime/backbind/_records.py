"""Plain records that describe nodes; the generated modules of the areas are made of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FormulaRecord:
    """The rule for the gradient of one input, or of several at once."""

    inputs: tuple[str, ...]
    """Arguments of the forward that it is for: ``("self",)``."""
    text: str
    """The C++ expression as written in the YAML: ``grad * result``."""
    line: int
    """Line of the YAML where it starts."""


@dataclass(frozen=True, slots=True)
class ArgumentRecord:
    """One argument of an operator that carries a saved value or a part of one."""

    name: str
    """``self_options_dtype``"""
    schema_type: str
    """Its type in the schema: ``ScalarType?``."""
    annotation: str
    """Its type in Python: ``torch.dtype | None``."""
    saved: str
    """The saved value that it belongs to: ``self_options``."""
    meaning: str
    """What it is, in words."""


@dataclass(frozen=True, slots=True)
class Source:
    """The place of an entry."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """Everything that is known about one node without running it."""

    operator: str
    """The forward operator with its overload: ``mul.Tensor``."""
    forward_schema: str
    dispatch_key: str
    """``Default``, or the key whose derivatives these are."""
    origin: str
    """``entry``, or ``view_copy`` or ``foreach`` where torch derives the node from an entry."""
    inputs: tuple[str, ...]
    """Differentiable arguments of the forward, in the order of ``needs_input_grad``."""
    outputs: tuple[str, ...]
    """Results of the forward whose gradients come in, in the order of ``grads``."""
    mode: str
    reason: str
    """Why this mode."""
    yaml: str
    line: int
    doc: str
    formulas: tuple[FormulaRecord, ...]
    arguments: tuple[ArgumentRecord, ...]

    @property
    def source(self) -> Source:
        """The place of the entry."""
        return Source(self.yaml, self.line)
