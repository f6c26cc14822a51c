"""Gradients that are undefined or not wanted."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from tests.ops.node_set import NODE_SET, Made, NodeCase, all_same_bits, run_node
from tests.ops.ways import WAYS

_MOST_MASKS = 16


def masks(count: int) -> list[list[bool]]:
    return [list(mask) for mask in product((True, False), repeat=count)][:_MOST_MASKS]


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_undefined_gradients_in_every_position(case: NodeCase) -> None:
    """With any of its gradients undefined, an operator computes what the live node computes."""
    made = case.make()
    for present in masks(len(made.grads)):
        grads = [grad if keep else None for grad, keep in zip(made.grads, present, strict=True)]
        expected = run_node(made.node, grads)
        for way in WAYS:
            assert all_same_bits(way.call(made.operator, grads, made.packed), expected), f"{way}, {present}"


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_without_any_gradient_there_is_none(case: NodeCase) -> None:
    made = case.make()
    results = made.operator([None] * len(made.grads), *made.packed)
    assert results == [None] * len(made.node.next_functions)


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_gradients_that_are_not_wanted_come_back_as_none(case: NodeCase) -> None:
    made = case.make()
    _, *saved = made.packed
    everything = made.call()
    for mask in masks(len(made.operator.inputs)):
        for way in WAYS:
            results = way.call(made.operator, made.grads, [mask, *saved])
            wanted = _per_gradient(made, mask)
            assert len(results) == len(everything)
            for result, full, want in zip(results, everything, wanted, strict=True):
                if not want:
                    assert result is None
                elif full is not None and result is not None:
                    torch.testing.assert_close(result, full)


def _per_gradient(made: Made, mask: list[bool]) -> list[bool]:
    """The flags of the inputs, repeated for each element of a list."""
    sizes = [
        made.packed[1 + [one.name for one in made.operator.saved].index(f"{name}_size")]
        if f"{name}_size" in {one.name for one in made.operator.saved}
        else 1
        for name in made.operator.inputs
    ]
    return [flag for flag, size in zip(mask, sizes, strict=True) for _ in range(size)]
