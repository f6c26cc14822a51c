"""What a call gave: gradients, or an exception."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

SEED = 20260
"""A formula may draw random numbers; both sides of a comparison then draw the same ones."""


_ASSERTION = " INTERNAL ASSERT FAILED at "
_REPORT = ", please report a bug to PyTorch. "

_JAGGED_SIZE = re.compile(r"\bj\d+\b")
"""The sizes of jagged tensors have numbers, and a new jagged tensor the next one."""


@dataclass(frozen=True)
class Outcome:
    """Gradients, or the exception that was raised instead."""

    gradients: tuple[torch.Tensor | None, ...] = ()
    error: tuple[type[BaseException], str] | None = None

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def has_gradient(self) -> bool:
        """Whether there is anything to compare: not only undefined gradients, and no exception."""
        return any(gradient is not None for gradient in self.gradients)


def outcome_of(call: Callable[[], object]) -> Outcome:
    """Run ``call`` and keep what came out of it."""
    torch.default_generator.manual_seed(SEED)
    try:
        result = call()
    except Exception as error:
        return Outcome(error=(type(error), _JAGGED_SIZE.sub("j0", str(error))))
    return Outcome(_as_gradients(result))


def as_operators_say(node: str, outcome: Outcome) -> Outcome:
    """The same outcome, but an internal assertion of torch's in the words of an operator.

    A node that is called with what does not fit it asks its user to report a bug to PyTorch. Operators do not: they
    name the node and what was expected.
    """
    if outcome.error is None or _ASSERTION not in outcome.error[1]:
        return outcome
    kind, text = outcome.error
    expected = text.partition(_ASSERTION)[0]
    explanation = text.partition(_REPORT)[2].partition("\n")[0]
    said = f"{node}: the arguments do not fit together: torch expected {expected}"
    return Outcome(error=(kind, f"{said} ({explanation})" if explanation else said))


def _as_gradients(result: object) -> tuple[torch.Tensor | None, ...]:
    # A live node with one output returns it bare; a functional operator always returns a list.
    if result is None or isinstance(result, torch.Tensor):
        return (result,)
    assert isinstance(result, Sequence)
    return tuple(result)
