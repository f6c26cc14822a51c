"""Backwards inside backwards, very deep graphs, and their end."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import backbind
import pytest
import torch

from tests.replay.differential import Expected, Run, apply, assert_same_as_eager
from tests.replay.test_inside_hooks import queue_callback


class Nested(torch.autograd.Function):
    """Runs a backward of its own in its backward, a number of times one inside the other."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, levels: int, run: Run) -> torch.Tensor:
        ctx.levels, ctx.run = levels, run
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        if ctx.levels == 0:
            ctx.run.note("deepest", grad, torch.is_grad_enabled())
            return grad * 2, None, None
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            inner.register_hook(lambda g: queue_callback(lambda: ctx.run.note("callback", ctx.levels)))
            apply(Nested, inner * 1, ctx.levels - 1, ctx.run).sum().backward()
        assert inner.grad is not None
        return grad * inner.grad / 2, None, None


@pytest.mark.parametrize("levels", [1, 5, 38, 39, 40, 41, 59, 60, 61, 100, 130])
def test_backwards_inside_backwards_by_functions(levels: int) -> None:
    def scenario(run: Run) -> object:
        x = torch.ones(2, requires_grad=True)
        out = run.attempt(lambda: apply(Nested, x, levels, run).sum().backward())
        return out, x.grad, run.attempt((x * 3).sum().backward), x.grad

    assert_same_as_eager(
        scenario, Expected(fallbacks=("a backward inside too many others",) if levels >= 40 else ())
    )


# Beyond 60 levels the engine goes on in another thread, and then loses a Python exception from there.
@pytest.mark.parametrize(
    ("deepest", "levels"),
    [*(("returns", n) for n in (1, 30, 70, 100)), *(("raises", n) for n in (1, 30, 55))],
)
def test_backwards_inside_backwards_by_hooks(deepest: str, levels: int) -> None:
    def scenario(run: Run) -> object:
        def descend(level: int) -> torch.Tensor:
            x = torch.ones(2, requires_grad=True)

            def hook(grad: torch.Tensor) -> torch.Tensor:
                if level < levels:
                    with torch.enable_grad():
                        return grad + descend(level + 1)
                if deepest == "raises":
                    raise ArithmeticError("at the bottom")
                return grad

            x.register_hook(hook)
            (x * 2).sum().backward()
            assert x.grad is not None
            return x.grad

        first = run.attempt(lambda: descend(0))
        levels_before, run_after = torch._C._current_graph_task_id(), run.attempt(lambda: descend(levels - 1))
        return first, levels_before, run_after

    assert_same_as_eager(
        scenario, Expected(fallbacks=("a backward inside too many others",) if levels >= 40 else ())
    )


def test_an_exception_from_a_hundred_levels_down() -> None:
    def descend(level: int) -> None:
        def hook(grad: torch.Tensor) -> None:
            if level == 100:
                raise ArithmeticError("at the bottom")
            with torch.enable_grad():
                descend(level + 1)

        x = torch.ones(2, requires_grad=True)
        x.register_hook(hook)
        (x * 2).sum().backward()

    with backbind.capture(), pytest.raises(ArithmeticError, match=r"^at the bottom$"):
        descend(0)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["chain", "ladder", "functions"])
def test_a_graph_of_a_hundred_thousand_nodes(shape: str) -> None:
    def scenario(run: Run) -> object:
        x = torch.full((2,), 1.0, requires_grad=True)
        value = x * 1
        for i in range(50_000 if shape == "ladder" else 100_000 if shape == "chain" else 20_000):
            if shape == "ladder":
                value = value * 0.5 + x
            elif shape == "functions" and i % 10 == 0:
                value = apply(Nested, value, 0, Run("inner", run.enter)) * 0.5
            else:
                value = value + 0.25
        alive = weakref.ref(value)
        loss = value.sum()
        del value
        with run.backward():
            loss.backward(retain_graph=True)
            loss.backward()
        del loss
        gc.collect()
        return x.grad, alive() is None

    assert_same_as_eager(scenario)


@pytest.mark.slow
def test_a_deep_graph_may_end_before_its_backward_does() -> None:
    with backbind.capture() as session:
        for _ in range(3):
            x = torch.ones(2, requires_grad=True)
            value = x * 1
            for _ in range(100_000):
                value = value + 0.25
            holder = [value.sum()]
            del value
            holder.pop().backward()
            assert x.grad is not None
            assert x.grad.tolist() == [1.0, 1.0]
    assert (session.stats.captures, session.stats.replays) == (1, 2)
