"""The ways in which an operator can be called; all of them must give the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from backbind._operator import FunctionalOperator
from torch import Tensor

Gradients = Sequence[Tensor | None]


@dataclass(frozen=True)
class Way:
    """One way to call an operator."""

    name: str
    call: Callable[[FunctionalOperator, Gradients, Sequence[Any]], list[Tensor | None]]
    """Called with the operator, its gradients, and ``(needs_input_grad, *saved)``."""

    def __str__(self) -> str:
        return self.name


def _through_overload(
    operator: FunctionalOperator, grads: Gradients, packed: Sequence[Any]
) -> list[Tensor | None]:
    results: list[Tensor | None] = operator.overload(grads, *packed)
    return results


WAYS = (
    Way("fast", lambda operator, grads, packed: operator(grads, *packed)),
    Way("dispatcher", _through_overload),
    Way("delegate", lambda operator, grads, packed: operator.delegate(grads, *packed)),
)
"""Python's own fast path, ``torch.ops``, and the node struct itself, which is other code where a formula is inline."""
