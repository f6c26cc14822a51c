"""Backwards from several tensors: some given twice, some that lead to others, leaves among them."""

from __future__ import annotations

import random
from collections.abc import Callable

import backbind
import pytest
import torch
from torch import Tensor

from tests.replay.differential import Run, assert_same_as_eager

Graph = tuple[list[Tensor], list[Tensor]]
"""Leaves, and every tensor that may be a root."""


def _graph(rng: random.Random) -> Graph:
    leaves = [torch.randn(2, requires_grad=True) for _ in range(rng.randint(2, 5))]
    values = list(leaves)
    for _ in range(rng.randint(0, 8)):
        left, right = rng.choice(values), rng.choice(values)
        values.append(rng.choice([left + right, left * right, left.sin(), left.unbind()[0] * right]))
    values += [rng.choice(values).sum() for _ in range(2)]
    return leaves, values


def _roots(rng: random.Random, values: list[Tensor]) -> tuple[list[Tensor], list[Tensor | None]]:
    """Roots with their gradients; some gradients of numbers are left out."""
    chosen = [rng.choice(values) for _ in range(rng.randint(2, 7))]
    chosen += rng.sample(chosen, rng.randint(0, len(chosen)))
    rng.shuffle(chosen)
    return chosen, [
        None if root.dim() == 0 and rng.random() < 0.5 else torch.full_like(root, i + 1.0)
        for i, root in enumerate(chosen)
    ]


def _watch(run: Run, leaves: list[Tensor], values: list[Tensor]) -> None:
    for i, value in enumerate(values):
        value.register_hook(lambda gradient, i=i: run.note("gradient", i, gradient))
    for i, leaf in enumerate(leaves):
        leaf.register_post_accumulate_grad_hook(lambda leaf, i=i: run.note("accumulated", i))


def _backward(rng: random.Random, graph: Graph, roots: list[Tensor], given: list[Tensor | None]) -> object:
    del rng
    torch.autograd.backward(roots, given)
    return [leaf.grad for leaf in graph[0]]


def _into_inputs(rng: random.Random, graph: Graph, roots: list[Tensor], given: list[Tensor | None]) -> object:
    torch.autograd.backward(roots, given, inputs=rng.sample(graph[0], rng.randint(1, len(graph[0]))))
    return [leaf.grad for leaf in graph[0]]


def _grad(rng: random.Random, graph: Graph, roots: list[Tensor], given: list[Tensor | None]) -> object:
    inputs = [rng.choice(graph[1]) for _ in range(rng.randint(1, 4))]
    return torch.autograd.grad(roots, inputs, given, allow_unused=True)


@pytest.mark.parametrize("ask", [_backward, _into_inputs, _grad])
@pytest.mark.parametrize("seed", range(25))
def test_random_lists_of_roots(seed: int, ask: Callable[..., object]) -> None:
    def scenario(run: Run) -> object:
        rng = random.Random(seed)
        leaves, values = _graph(rng)
        _watch(run, leaves, values)
        roots, given = _roots(rng, values)
        return run.attempt(lambda: ask(rng, (leaves, values), roots, given))

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("order", [(0, 1, 0), (0, 0, 1), (1, 0, 0), (2, 1, 0, 1, 2), (0, 1, 2, 2, 1, 0, 0)])
def test_leaves_that_are_roots_several_times(order: tuple[int, ...]) -> None:
    def scenario(run: Run) -> object:
        leaves = [torch.ones(2, requires_grad=True) for _ in range(3)]
        _watch(run, leaves, leaves)
        with run.backward():
            torch.autograd.backward([leaves[i] for i in order], [torch.ones(2)] * len(order))
        return [leaf.grad for leaf in leaves]

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("seed", range(40))
def test_the_leaves_of_several_roots_come_in_the_order_of_accumulation(seed: int) -> None:
    rng = random.Random(seed)
    leaves, values = _graph(rng)
    roots, given = _roots(rng, values)
    accumulated: list[int] = []
    for leaf in leaves:
        leaf.register_post_accumulate_grad_hook(lambda leaf: accumulated.append(id(leaf)))
    torch.autograd.backward(roots, given, retain_graph=True)
    assert [id(leaf) for leaf in backbind.leaves(roots)] == accumulated
