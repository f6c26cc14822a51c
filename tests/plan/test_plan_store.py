"""Which plans are held, how much they may take of memory, and that each is found again among others like it."""

from __future__ import annotations

import random

import backbind
import pytest
import torch

MOST_BYTES = 64 << 20

PER_INPUT = 24
"""One that is asked for: a place in the plan, a returned gradient, the operation that returns it."""


def leaf() -> torch.Tensor:
    return torch.randn(3, requires_grad=True)


def large(inputs: int) -> None:
    """A backward whose plan takes about PER_INPUT bytes for each input that is asked for, and hardly anything else."""
    x = leaf()
    torch.autograd.grad(x.sum(), [x] * inputs)


def test_plans_take_a_bounded_amount_of_memory_and_the_one_used_last_stays() -> None:
    with backbind.capture() as session:
        large(50_000)
        alone = session.stats.plan_bytes
        assert 50_000 * PER_INPUT <= alone < 50_000 * PER_INPUT + 2000
        for i in range(50):
            large(120_001 + i)
            large(50_000)
    stats = session.stats
    assert (stats.captures, stats.replays) == (51, 50)
    one = 120_025 * PER_INPUT
    assert MOST_BYTES - 2 * one < stats.plan_bytes <= MOST_BYTES
    assert stats.plans == (MOST_BYTES - alone) // one + 1
    with backbind.capture() as again:
        for inputs in (120_001, 120_050, 50_000):
            large(inputs)
    assert (again.stats.captures, again.stats.replays) == (1, 2)


def test_a_plan_that_is_larger_than_all_may_be_is_not_kept() -> None:
    with backbind.capture() as session:
        leaf().sum().backward()
        for _ in range(2):
            large(MOST_BYTES // PER_INPUT)
        leaf().sum().backward()
    stats = session.stats
    assert (stats.captures, stats.replays, stats.plans) == (3, 1, 1)
    assert stats.recapture_reasons == {"the graph is so large that its plan is not kept": 2}


def test_forgotten_plans_take_no_memory() -> None:
    with backbind.capture() as session:
        leaf().sum().backward()
    assert session.stats.plan_bytes > 0
    backbind.reset()
    assert session.stats.plan_bytes == 0


@pytest.mark.parametrize("where", ["near the loss", "near the leaf"])
def test_each_of_many_plans_that_share_most_of_their_steps_is_found(where: str) -> None:
    operations = [torch.sin, torch.cos, torch.tanh, torch.sigmoid]

    def run(number: int) -> None:
        x = leaf()
        value = x
        different = [operations[number >> 2 * i & 3] for i in range(4)]
        same = [torch.neg] * 60
        for operation in different + same if where == "near the leaf" else same + different:
            value = operation(value)
        expected = value.detach()
        torch.stack([value.sum(), expected.sum()]).sum().backward()
        seen.append((number, x.detach(), x.grad))

    seen: list[tuple[int, torch.Tensor, torch.Tensor | None]] = []
    rng = random.Random(0)
    numbers = rng.sample(range(4**4), 120)
    with backbind.capture() as session:
        for number in numbers:
            run(number)
        for number in rng.sample(numbers, len(numbers)):
            run(number)
    assert (session.stats.captures, session.stats.replays) == (120, 120)
    for number, x, gradient in seen:
        value = y = x.clone().requires_grad_()
        for i in range(4):
            value = operations[number >> 2 * i & 3](value)
        if where == "near the loss":
            value = y
            for operation in [torch.neg] * 60 + [operations[number >> 2 * i & 3] for i in range(4)]:
                value = operation(value)
        (reference,) = torch.autograd.grad(value.sum(), y)
        assert gradient is not None
        assert torch.equal(gradient, reference)


@pytest.mark.parametrize("kind", ["wanted", "inputs"])
def test_graphs_that_differ_in_what_is_asked_for_are_each_found(kind: str) -> None:
    """Each under one key: as many roots and inputs, of one depth."""
    rng = random.Random(1)

    def run(asked: tuple[int, ...]) -> None:
        leaves = [leaf() for _ in range(6)]
        values = [x.sin() for x in leaves]
        total = torch.stack(values).sum()
        wanted = [leaves[i] if kind == "inputs" else (leaves[i], values[i])[i % 2] for i in asked]
        gradients = torch.autograd.grad(total, wanted)
        for i, gradient in zip(asked, gradients, strict=True):
            x = leaves[i].detach()
            assert torch.equal(gradient, x.cos() if kind == "inputs" or i % 2 == 0 else torch.ones(3))

    requests = list({tuple(rng.sample(range(6), 3)) for _ in range(60)})
    with backbind.capture() as session:
        for asked in requests:
            run(asked)
        for asked in rng.sample(requests, len(requests)):
            run(asked)
    assert (session.stats.captures, session.stats.replays) == (len(requests), len(requests))
