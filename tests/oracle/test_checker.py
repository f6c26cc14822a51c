"""The checker finds an operator that is wrong in any of the ways it looks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import backbind
import pytest
import torch

from tests.oracle.checker import Checker

Gradients = list[torch.Tensor | None]


class Wrong:
    """An operator whose results something is done to."""

    def __init__(
        self, right: Any, spoil: Callable[[Gradients, Sequence[bool]], Gradients], mode: str
    ) -> None:
        self._right = right
        self._spoil = spoil
        self.mode = mode

    def __getattr__(self, name: str) -> object:
        return getattr(self._right, name)

    def __call__(self, grads: Gradients, needs_input_grad: Sequence[bool], *saved: object) -> Gradients:
        return self._spoil(self._right(grads, needs_input_grad, *saved), needs_input_grad)


def _unchanged(gradients: Gradients, _: Sequence[bool]) -> Gradients:
    return gradients


def _last_bit(gradients: Gradients, _: Sequence[bool]) -> Gradients:
    return [one if one is None else torch.nextafter(one, one + 1) for one in gradients]


def _mask_ignored(gradients: Gradients, needed: Sequence[bool]) -> Gradients:
    return [torch.ones(3) if one is None else one for one in gradients]


def _wrong_for_some_mask(gradients: Gradients, needed: Sequence[bool]) -> Gradients:
    return [one if one is None or all(needed) else one + 1 for one in gradients]


def _zeros_for_none(gradients: Gradients, needed: Sequence[bool]) -> Gradients:
    wanted = zip(gradients, needed, strict=True)
    return [torch.zeros(3) if one is None and flag else one for one, flag in wanted]


def _no_graph(gradients: Gradients, _: Sequence[bool]) -> Gradients:
    return [one if one is None else one.detach() for one in gradients]


def _raises(gradients: Gradients, _: Sequence[bool]) -> Gradients:
    raise RuntimeError("wrong")


def _one_too_many(gradients: Gradients, _: Sequence[bool]) -> Gradients:
    return [*gradients, None]


SPOILERS = [
    _last_bit,
    _mask_ignored,
    _wrong_for_some_mask,
    _zeros_for_none,
    _no_graph,
    _raises,
    _one_too_many,
]


def _program() -> torch.Tensor:
    return torch.arange(1.0, 4.0).requires_grad_() * torch.arange(2.0, 5.0).requires_grad_()


@pytest.mark.parametrize("spoil", SPOILERS, ids=lambda one: one.__name__.strip("_"))
def test_a_wrong_operator_is_found(spoil: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = backbind.ops.for_node
    monkeypatch.setattr(backbind.ops, "for_node", lambda node: Wrong(right(node), spoil, "delegate"))
    found = Checker().check(_program())
    assert {one.node for one in found} >= {"MulBackward0"}


def test_an_inline_formula_that_differs_from_the_delegate_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = backbind.ops.for_node
    monkeypatch.setattr(backbind.ops, "for_node", lambda node: Wrong(right(node), _last_bit, "inline"))
    assert "operator against delegate" in {one.compared for one in Checker().check(_program())}


def test_an_operator_that_writes_to_its_arguments_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Writing(Wrong):
        def __call__(self, grads: Gradients, needs_input_grad: Sequence[bool], *saved: object) -> Gradients:
            with torch.no_grad():
                for one in saved:
                    if isinstance(one, torch.Tensor):
                        one.add_(0)
            return super().__call__(grads, needs_input_grad, *saved)

    right = backbind.ops.for_node
    monkeypatch.setattr(backbind.ops, "for_node", lambda node: Writing(right(node), _unchanged, "delegate"))
    assert "it was written to" in {one.what for one in Checker().check(_program())}


def test_a_right_operator_is_compared_once_for_each_kind() -> None:
    checker = Checker()
    assert checker.check(_program()) == []
    calls = checker.tally.calls
    assert calls > 0
    assert checker.check(_program()) == []
    assert checker.tally.calls == calls
    wider = torch.ones(2, 3, requires_grad=True) * torch.ones(2, 3, requires_grad=True)
    assert checker.check(wider) == []
    assert checker.tally.calls > calls


def test_a_released_graph_raises_the_same_error_on_both_sides() -> None:
    result = _program()
    result.sum().backward()
    checker = Checker()
    assert checker.check(result) == []
    assert "MulBackward0" in checker.tally.exercised


def test_nodes_of_second_order_are_checked() -> None:
    checker = Checker()
    assert checker.check(torch.ones(3, requires_grad=True).tanh()) == []
    assert "TanhBackwardBackward0" in checker.tally.exercised
