"""Graphs whose nodes were not made in the order of their graph: a plan guards how their sequence numbers rank."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import backbind
import pytest
import torch
from torch import Tensor

from tests.plan.test_walk import all_nodes
from tests.replay.differential import Run, assert_same_as_eager

T = TypeVar("T")


def leaf(*shape: int) -> Tensor:
    return torch.randn(*(shape or (4, 3)), requires_grad=True)


def _row(x: Tensor) -> Tensor:
    base = x * 1
    view = base[0]
    base.mul_(2)
    return (view * 3).sum()


def _written_part(x: Tensor) -> Tensor:
    base = x * 1
    view = base[..., 0]
    base[..., 0] += x.sin()[..., 1]
    return (view.exp() * base[..., 0].tanh()).sum()


def _several_views(x: Tensor) -> Tensor:
    base = x * 1
    views = [base[0], base.t(), base.view(3, 4), base[1:3].narrow(1, 0, 2)]
    base.exp_()
    total = base.sum()
    for view in views:
        total = total + view.sin().sum()
    return total


def _changed_twice(x: Tensor) -> Tensor:
    base = x * 1
    view = base[:, 0]
    base.mul_(2)
    first = view.sum()
    base.add_(x)
    return (view * first).sum()


def _in_the_middle(x: Tensor) -> Tensor:
    for i in range(6):
        x = (x * 1.5).tanh()
        if i % 2:
            x = x * 1
            view = x[:, i % 3]
            x.mul_(2)
            x = x + view.sum()
    return x.sum()


def _note_order(run: Run, loss: Tensor) -> None:
    """Notes each node down when it runs, with its number counted from that of the loss."""
    assert loss.grad_fn is not None
    last = loss.grad_fn._sequence_nr()
    for node in all_nodes(loss):
        name = node.name()
        number = None if name.endswith("AccumulateGrad") else node._sequence_nr() - last
        node.register_prehook(lambda _, entry=(name, number): run.note(*entry))


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "row": _row,
    "written part": _written_part,
    "several views": _several_views,
    "changed twice": _changed_twice,
    "in the middle": _in_the_middle,
}


@pytest.mark.parametrize("forward", VIEWS)
def test_a_view_that_is_used_after_its_base_was_changed(forward: str) -> None:
    def scenario(run: Run) -> object:
        gradients = []
        for rows in (4, 4, 4):
            x = leaf(rows, 3)
            loss = VIEWS[forward](x)
            _note_order(run, loss)
            with run.backward():
                loss.backward()
            gradients.append(x.grad)
        return gradients

    assert_same_as_eager(scenario)
    backbind.reset()
    with backbind.capture() as session:
        for _ in range(4):
            VIEWS[forward](leaf()).backward()
    stats = session.stats
    assert (stats.captures, stats.replays, stats.recapture_reasons) == (1, 3, {})


def in_new_thread(call: Callable[[], T]) -> T:
    """What ``call`` gives in a thread whose sequence numbers begin anew."""
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


def numbered(count: int, call: Callable[[], T]) -> T:
    """What ``call`` gives in a thread of its own in which ``count`` nodes were made before."""

    def after_others() -> T:
        for _ in range(count):
            torch.ones(1, requires_grad=True).neg()
        return call()

    return in_new_thread(after_others)


def _threaded(seed: int, x: Tensor, shift: int = 0) -> Tensor:
    """A random graph, each part of which a thread of its own made: many of their numbers are equal."""
    rng = random.Random(seed)
    values = [x, x]
    for _ in range(rng.randint(2, 6)):
        left, right = rng.choice(values), rng.choice(values)

        def part(left: Tensor = left, right: Tensor = right, length: int = rng.randint(0, 3)) -> Tensor:
            for _ in range(length):
                left = left.sin()
            return left * right

        values.append(numbered(rng.randint(0, 4) + shift, part))
    return numbered(rng.randint(0, 4), lambda: torch.stack([value.sum() for value in values]).sum())


@pytest.mark.parametrize("seed", range(20))
def test_a_graph_that_several_threads_made(seed: int) -> None:
    def scenario(run: Run) -> object:
        gradients = []
        for _ in range(2):
            x = leaf()
            loss = _threaded(seed, x)
            _note_order(run, loss)
            with run.backward():
                loss.backward()
            gradients.append(x.grad)
        return gradients

    assert_same_as_eager(scenario)
    backbind.reset()
    with backbind.capture() as session:
        for shift in (0, 0, 1, 0, 1):
            _threaded(seed, leaf(), shift).backward()
    stats = session.stats
    # Where the shift changes how the numbers rank, it makes a plan of its own, once.
    assert stats.captures <= 2
    assert stats.captures + stats.replays == 5


def _branches(ages: Sequence[int], x: Tensor, note: Callable[[int], None] | None = None) -> Tensor:
    """One branch for each age, made by a thread of its own in which so many nodes were made before."""
    values = []
    for i, age in enumerate(ages):
        values.append(numbered(age, x.sin))
        if note is not None:
            values[-1].register_hook(lambda _, i=i: note(i))
    return in_new_thread(lambda: torch.stack(values).sum())


RANKINGS = [
    *[(a, b, c) for a in range(3) for b in range(3) for c in range(3)],
    (7, 7, 7),
    (0, 5, 9),
    (4, 3, 3),
]


def test_one_plan_for_each_ranking_and_no_more() -> None:
    def shape(ages: tuple[int, ...]) -> tuple[int, ...]:
        """How the numbers rank, beside those of the thread that joined the branches (0 and 1)."""
        everything = sorted({*ages, 0, 1})
        return tuple(everything.index(age) for age in ages)

    order = [*RANKINGS, *RANKINGS]
    random.Random(0).shuffle(order)
    with backbind.capture() as session:
        for ages in order:
            eager: list[int] = []
            captured: list[int] = []
            in_new_thread(_branches(ages, leaf(), eager.append).backward)  # which captures nothing
            _branches(ages, leaf(), captured.append).backward()
            assert captured == eager
    assert session.stats.captures == len({shape(ages) for ages in RANKINGS})


def test_what_is_said_of_another_ranking() -> None:
    with backbind.capture() as session:
        _branches((0, 9), leaf()).backward()
        _branches((9, 0), leaf()).backward()
        _branches((9, 9), leaf()).backward()
    stats = session.stats
    assert (stats.captures, stats.replays) == (3, 0)
    assert list(stats.recapture_reasons) == [
        "the forward ran the same operations in another order, or in several threads that took other turns"
    ]


def test_two_nodes_of_one_number_stay_two() -> None:
    def product(run: Run, shared: bool) -> Tensor:
        x = leaf()
        left = numbered(5, x.sin)
        right = left if shared else numbered(5, x.sin)
        left.register_hook(lambda gradient: run.note("left", gradient))
        right.register_hook(lambda gradient: run.note("right", gradient))
        loss = in_new_thread(lambda: (left * right).sum())
        with run.backward():
            loss.backward()
        assert x.grad is not None
        return x.grad

    def scenario(run: Run) -> object:
        return [product(run, shared) for shared in (False, True, False, True)]

    assert_same_as_eager(scenario)


def test_many_rankings_of_one_structure_are_each_found() -> None:
    rng = random.Random(1)
    ages = [tuple(rng.sample(range(20), 6)) for _ in range(40)]
    with backbind.capture() as session:
        for one in ages:
            _branches(one, leaf()).backward()
        captures = session.stats.captures
        for one in rng.sample(ages, len(ages)):
            _branches(one, leaf()).backward()
    assert session.stats.captures == captures
    assert session.stats.replays == 2 * len(ages) - captures
