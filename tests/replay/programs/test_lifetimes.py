"""What a backward needs no more is freed as early as eager frees it, seen from hooks that run meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest
import torch

from tests.replay.programs.lifetimes import Lifetimes, Packed
from tests.replay.programs.observations import Log, log_difference
from tests.replay.programs.runs import differences

Scene: TypeAlias = Callable[[Log, Lifetimes], None]


class Owns(torch.autograd.Function):
    """Keeps an object of Python's in its context, whose life is watched, as is that of its gradients."""

    @staticmethod
    def forward(ctx: Any, lifetimes: Lifetimes, value: torch.Tensor) -> torch.Tensor:
        ctx.owned = Packed(None, value.dtype)
        ctx.lifetimes = lifetimes
        lifetimes.watch(ctx.owned, "what a context owns")
        ctx.save_for_backward(value)
        return value.sin()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        (value,) = ctx.saved_tensors
        ctx.lifetimes.watch(gradient, "gradient that comes in")
        result = gradient * value.cos()
        ctx.lifetimes.watch(result, "gradient that goes out")
        ctx.lifetimes.log.add("backward of Owns")
        return None, result


def leaf(size: int = 3) -> torch.Tensor:
    return torch.arange(1.0, size + 1).requires_grad_()


def chain(log: Log, lifetimes: Lifetimes, start: torch.Tensor, length: int = 4) -> torch.Tensor:
    """Each value is saved by two nodes and held by nobody else; a hook tells when the backward comes by."""
    value = start
    for number in range(length):
        value = value.exp() * value.sin()
        lifetimes.watch(value, f"value {number}")
        _tell_gradient(log, lifetimes, value, number)
    return value


def _tell_gradient(log: Log, lifetimes: Lifetimes, value: torch.Tensor, number: int) -> None:
    def tell(gradient: torch.Tensor) -> None:
        lifetimes.watch(gradient, f"gradient {number}")
        log.add(f"hook {number}")

    value.register_hook(tell)


def of_a_chain(log: Log, lifetimes: Lifetimes) -> None:
    chain(log, lifetimes, leaf()).sum().backward()


def of_a_chain_while_its_result_lives(log: Log, lifetimes: Lifetimes) -> None:
    loss = chain(log, lifetimes, leaf()).sum()
    loss.backward()
    log.add("the loss still lives")
    del loss


def of_a_graph_that_is_retained_once(log: Log, lifetimes: Lifetimes) -> None:
    loss = chain(log, lifetimes, leaf()).sum()
    loss.backward(retain_graph=True)
    log.add("again")
    loss.backward()
    log.add("the loss still lives")


def of_branches(log: Log, lifetimes: Lifetimes) -> None:
    start = leaf()
    left, right = chain(log, lifetimes, start, 2), chain(log, lifetimes, start, 3)
    (left * right).sum().backward()


def of_a_part_of_the_graph(log: Log, lifetimes: Lifetimes) -> None:
    one, other = leaf(), leaf()
    loss = (chain(log, lifetimes, one, 2) + chain(log, lifetimes, other, 2)).sum()
    loss.backward(inputs=[one])
    log.add("one part was run")
    del loss
    log.add("the graph is left")


def of_a_gradient_in_the_middle(log: Log, lifetimes: Lifetimes) -> None:
    start = leaf()
    middle = chain(log, lifetimes, start, 2)
    (gradient,) = torch.autograd.grad(chain(log, lifetimes, middle, 2).sum(), middle)
    lifetimes.watch(gradient, "gradient that is returned")
    log.add("gradient is there", [gradient])
    del gradient
    log.add("middle still lives")


def of_a_graph_behind_the_gradients(log: Log, lifetimes: Lifetimes) -> None:
    start = leaf()
    (gradient,) = torch.autograd.grad(chain(log, lifetimes, start).sum(), start, create_graph=True)
    log.add("gradient is there", [gradient])
    gradient.sum().backward()
    log.add("twice")


def of_packed_values(log: Log, lifetimes: Lifetimes) -> None:
    count = 0

    def pack(tensor: torch.Tensor) -> Packed:
        nonlocal count
        count += 1
        packed = Packed(tensor, tensor.dtype)
        lifetimes.watch(packed, f"packed {count}")
        return packed

    def unpack(packed: Packed) -> torch.Tensor:
        log.add("unpack")
        assert isinstance(packed.kept, torch.Tensor)
        made = packed.kept.clone()
        lifetimes.watch(made, "unpacked")
        return made

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = chain(log, lifetimes, leaf()).sum()
    loss.backward()
    log.add("the loss still lives")


def of_functions(log: Log, lifetimes: Lifetimes) -> None:
    apply: Any = Owns.apply
    value: torch.Tensor = leaf()
    for number in range(3):
        value = apply(lifetimes, value)
        lifetimes.watch(value, f"value {number}")
        lifetimes.watch(value.grad_fn, f"node {number}")
    loss = value.sum()
    loss.backward()
    log.add("the loss still lives")
    del loss, value
    log.add("nothing lives")


def of_a_backward_that_raises(log: Log, lifetimes: Lifetimes) -> None:
    def fail(gradient: torch.Tensor) -> None:
        raise RuntimeError("a hook raises")

    first = chain(log, lifetimes, leaf(), 2)
    first.register_hook(fail)
    loss = chain(log, lifetimes, first, 2).sum()
    try:
        loss.backward()
    except RuntimeError as error:
        log.add_error("the backward", error)
    log.add("the loss still lives")
    del loss, first
    log.add("nothing lives")


def of_given_gradients(log: Log, lifetimes: Lifetimes) -> None:
    value = chain(log, lifetimes, leaf(), 2)
    gradient = torch.ones(3)
    lifetimes.watch(gradient, "gradient that is given")
    value.backward(gradient)
    log.add("it is still held")
    del gradient
    log.add("it is held no more")


def of_gradients_of_leaves(log: Log, lifetimes: Lifetimes) -> None:
    start = leaf()
    for number in range(3):
        if number == 2:
            start.grad = None
        loss = (start * torch.ones(3)).sum()
        start.register_post_accumulate_grad_hook(lambda one: log.add("accumulated"))
        loss.backward()
        lifetimes.watch(start.grad, f"gradient of step {number}")
        log.add(f"step {number}", [start.grad])


SCENES: tuple[Scene, ...] = (
    of_a_chain,
    of_a_chain_while_its_result_lives,
    of_a_graph_that_is_retained_once,
    of_branches,
    of_a_part_of_the_graph,
    of_a_gradient_in_the_middle,
    of_a_graph_behind_the_gradients,
    of_packed_values,
    of_functions,
    of_a_backward_that_raises,
    of_given_gradients,
    of_gradients_of_leaves,
)


def play(scene: Scene) -> Log:
    log = Log()
    lifetimes = Lifetimes(log)
    scene(log, lifetimes)
    log.add("the end")
    lifetimes.stop()
    return log


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_lives_end_no_later_than_in_eager(scene: Scene) -> None:
    assert play(scene).deaths, "the scene shows nothing"
    assert differences(partial(play, scene)) == []


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_longer_life_would_be_seen(scene: Scene) -> None:
    expected, late = play(scene), play(scene)
    name = next(iter(late.deaths))
    late.deaths[name] += 1
    assert f"expected {name} to die by now, it does before event {late.deaths[name]}" in log_difference(
        expected, late
    )
