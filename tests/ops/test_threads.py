"""Operators called by several threads at once, and while other threads run backwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from tests.ops.node_set import NODE_SET, all_same_bits, same_bits

_ROUNDS = 20


@pytest.mark.parametrize("count", [2, 4])
def test_threads_that_call_at_once(count: int) -> None:
    """Every thread calls every operator, by every face, on tensors that all of them share."""
    made = [case.make() for case in NODE_SET]
    packed = [one.packed for one in made]
    grads = [one.grads for one in made]
    expected = [one.call() for one in made]
    start = threading.Barrier(count)

    def work(offset: int) -> int:
        start.wait()
        calls = 0
        for step in range(len(made) * 3):
            position = (step + offset * 17) % len(made)
            operator = made[position].operator
            face = (operator, operator.delegate, operator.overload)[(step + offset) % 3]
            assert all_same_bits(face(grads[position], *packed[position]), expected[position])
            calls += 1
        return calls

    with ThreadPoolExecutor(count) as pool:
        assert list(pool.map(work, range(count))) == [len(made) * 3] * count


def test_calls_while_other_threads_run_backwards() -> None:
    stop = threading.Event()
    failures: list[BaseException] = []
    backwards: list[int] = []

    def train(run: Callable[[Tensor, Tensor], object]) -> None:
        weight = torch.randn(8, 8, dtype=torch.float64, requires_grad=True)
        x = torch.randn(4, 8, dtype=torch.float64)
        (expected,) = torch.autograd.grad((x @ weight).tanh().sum(), weight)
        try:
            while not stop.is_set():
                weight.grad = None
                run((x @ weight).tanh().sum(), weight)
                gradient: Tensor | None = weight.grad
                assert gradient is None or same_bits(gradient, expected)
                backwards.append(1)
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=train, args=(run,))
        for run in (
            lambda loss, weight: loss.backward(),
            lambda loss, weight: loss.backward(inputs=[weight]),
            lambda loss, weight: torch.autograd.grad(loss, weight),
        )
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(_ROUNDS):
            for case in NODE_SET[::5]:
                made = case.make()
                assert all_same_bits(made.call(), made.expected())
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert len(backwards) > 3


def test_calls_from_hooks_of_backwards_in_several_threads() -> None:
    made = next(case for case in NODE_SET if case.node == "MulBackward0").make()
    expected = made.call()
    packed, grads = made.packed, made.grads

    def work(number: int) -> list[bool]:
        seen: list[bool] = []

        def hook(grad: Tensor) -> None:
            with torch.enable_grad():
                seen.append(all_same_bits(made.operator(grads, *packed), expected))

        for _ in range(_ROUNDS):
            x = torch.ones(2, requires_grad=True)
            middle = x * number
            middle.register_hook(hook)
            torch.autograd.grad(middle.exp().sum(), x)
        return seen

    with ThreadPoolExecutor(4) as pool:
        for seen in pool.map(work, range(1, 5)):
            assert seen == [True] * _ROUNDS


def test_the_overload_is_found_once_by_many_threads() -> None:
    """Looking an overload up runs Python, so threads take turns in the middle of it."""
    import backbind

    operators = list(backbind.ops)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: [operator.overload for operator in operators], range(4)))
    assert all(one == found[0] for one in found)
    assert found[0] == [getattr(torch.ops.backbind, operator.name).default for operator in operators]
