"""The checker finds an operator that is wrong in any of the ways it looks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import backbind
import pytest
import torch
from backbind import _C

from tests.oracle.checker import Checker
from tests.oracle.tally import Column

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


def _zeros_lose_their_sign(gradients: Gradients, _: Sequence[bool]) -> Gradients:
    return [one if one is None or not (one == 0).any() else one + 0.0 for one in gradients]


def _infinities_are_nan(gradients: Gradients, _: Sequence[bool]) -> Gradients:
    return [one if one is None or not one.isinf().any() else one - one for one in gradients]


@pytest.mark.parametrize("spoil", [_zeros_lose_their_sign, _infinities_are_nan])
def test_an_operator_that_is_wrong_for_special_values_is_found(
    spoil: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = backbind.ops.for_node
    monkeypatch.setattr(backbind.ops, "for_node", lambda node: Wrong(right(node), spoil, "delegate"))
    found = Checker().check(_program())
    assert {one.call.partition(",")[0] for one in found} <= {
        "special gradients",
        "special saved values",
        "special gradients and saved values",
    }
    assert {one.node for one in found} == {"MulBackward0"}


@pytest.mark.parametrize("requires_grad", [True, False])
def test_an_operator_that_asks_what_saved_values_require_is_found(
    requires_grad: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asking(Wrong):
        def __call__(self, grads: Gradients, needs_input_grad: Sequence[bool], *saved: object) -> Gradients:
            tensors = [one for one in saved if isinstance(one, torch.Tensor)]
            gradients = super().__call__(grads, needs_input_grad, *saved)
            wrong = any(one.requires_grad is requires_grad and one.is_leaf for one in tensors)
            return [None for _ in gradients] if wrong else gradients

    right = backbind.ops.for_node
    monkeypatch.setattr(backbind.ops, "for_node", lambda node: Asking(right(node), _unchanged, "delegate"))
    x, y = (torch.ones(3, requires_grad=True) * 2 for _ in range(2))
    found = Checker().check(x * y)
    described = "saved values requiring grad" if requires_grad else "saved values detached"
    assert [one.call for one in found if one.node == "MulBackward0"].count(described) > 0
    assert {one.compared for one in found if one.call == described} == {"operator against the live node"}


def test_an_operator_that_bakes_strides_into_a_graph_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Baking(Wrong):
        def __call__(self, grads: Gradients, needs_input_grad: Sequence[bool], *saved: object) -> Gradients:
            baked = [
                one.as_strided(one.shape, one.stride()) if isinstance(one, torch.Tensor) else one
                for one in saved
            ]
            return super().__call__(grads, needs_input_grad, *baked)

    right = backbind.ops.for_node
    monkeypatch.setattr(backbind.ops, "for_node", lambda node: Baking(right(node), _unchanged, "delegate"))
    found = Checker().check(torch.randn(3, 2, requires_grad=True) * torch.randn(3, 2, requires_grad=True))
    assert {one.call for one in found} == {
        f"{how}, run on other strides"
        for how in (
            "real, in grad mode",
            "real, under no_grad",
            "symbolic, under no_grad",
        )
    }


def test_a_graph_that_only_inference_mode_refuses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Wrong):
        def __call__(self, grads: Gradients, needs_input_grad: Sequence[bool], *saved: object) -> Gradients:
            if torch.is_inference_mode_enabled():
                raise RuntimeError("not in inference mode")
            return super().__call__(grads, needs_input_grad, *saved)

    right = backbind.ops.for_node
    monkeypatch.setattr(backbind.ops, "for_node", lambda node: Refusing(right(node), _unchanged, "delegate"))
    assert {(one.call, one.what) for one in Checker().check(_program())} == {
        (
            f"{tracing}, in inference mode",
            "expected a graph as in other modes, got (<class 'RuntimeError'>, 'not in inference mode')",
        )
        for tracing in ("real", "symbolic")
    }


@pytest.mark.parametrize("wrong", ["value", "mask", "writes"])
def test_a_wrong_step_is_found(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = _C.run_step

    def run_step(node: object, gradients: Gradients, wanted: list[bool]) -> Gradients | None:
        results = right(node, gradients, wanted)
        if results is None:
            return None
        if wrong == "value":
            return [one if one is None else torch.nextafter(one, one + 1) for one in results]
        if wrong == "mask":
            return [torch.ones(3) if one is None else one for one in results]
        gradients_there = [one for one in gradients if one is not None]
        for one in gradients_there:
            one.data.mul_(2)
        return results

    monkeypatch.setattr(_C, "run_step", run_step)
    found = Checker().check(_program())
    expected = {
        "value": {"step against the live node", "step against delegate"},
        "mask": {"step against the live node", "step against delegate"},
        "writes": {"step"},
    }
    assert {one.compared for one in found if one.compared.startswith("step")} == expected[wrong]
    assert {one.node for one in found if one.compared.startswith("step")} >= {"MulBackward0"}


def test_what_is_compared_is_counted() -> None:
    checker = Checker()
    assert checker.check(_program()) == []
    assert {column for column, nodes in checker.tally.covered.items() if "MulBackward0" in nodes} == set(
        Column
    )
    assert all(checker.tally.comparisons[column] > 0 for column in Column)


def test_a_node_without_gradients_is_met_and_not_covered() -> None:
    checker = Checker()
    assert checker.check(torch.unique(torch.ones(3, requires_grad=True))) == []
    assert checker.tally.met == {"Unique2Backward0"}
    assert not any(checker.tally.covered.values())


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
    assert "MulBackward0" in checker.tally.met
    assert "MulBackward0" not in checker.tally.covered[Column.OPERATOR]


def test_nodes_of_second_order_are_checked() -> None:
    checker = Checker()
    assert checker.check(torch.ones(3, requires_grad=True).tanh()) == []
    assert "TanhBackwardBackward0" in checker.tally.covered[Column.OPERATOR]


def _kinds_of_products() -> list[torch.Tensor]:
    """Products of a hundred kinds."""
    shapes = [(), (1,), (2,), (1, 2), (2, 1), (2, 2), (2, 1, 2), (2, 2, 2), (1, 1, 2), (2, 2, 1)]
    return [
        torch.ones(left, requires_grad=True) * torch.ones(right, requires_grad=True)
        for left in shapes
        for right in shapes
    ]


@pytest.mark.parametrize("spoil", SPOILERS, ids=lambda one: one.__name__.strip("_"))
def test_kinds_that_are_not_compared_in_every_way_find_what_is_wrong_together(
    spoil: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = backbind.ops.for_node
    monkeypatch.setattr(backbind.ops, "for_node", lambda node: Wrong(right(node), spoil, "delegate"))
    checker = Checker(whole=0)
    assert any(checker.check(product) for product in _kinds_of_products())


def test_kinds_that_are_not_compared_in_every_way_cover_all_ways_together() -> None:
    checker = Checker(whole=0)
    assert not any(checker.check(product) for product in _kinds_of_products())
    assert {column for column, nodes in checker.tally.covered.items() if "MulBackward0" in nodes} == set(
        Column
    )
