"""Programs whose backwards are more than one call of ``backward()``, or whose graphs change: timed as a whole."""

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tools.benchmarks._models import Model, Surround, deep_small

MICRO_BATCHES = 4
STRUCTURES = 8
THREADS = 2
PLANS = 128
"""As many as are held."""
LENGTH = 693
"""Operations that graphs share whose last seven are told apart: a hundredth of all."""


def _twice(numbers: Iterator[int]) -> Iterator[int]:
    return (number for number in numbers for _ in range(2))


def _each_backward(losses: list[Tensor], surround: Surround) -> None:
    with surround():
        for loss in losses:
            loss.backward()


def micro_batches() -> Model:
    """The first backward hands its gradients to the leaves, the others add to them in place."""
    model = deep_small(32)
    return Model(
        f"{MICRO_BATCHES} micro-batches",
        model.parameters,
        lambda: [model.forward() for _ in range(MICRO_BATCHES)],
        backward=_each_backward,
        has_floor=False,
    )


def alternating_structures() -> Model:
    """Eight graphs in turn, as of a program with branches."""
    models = [deep_small(8 + number) for number in range(STRUCTURES)]
    return Model(
        f"{STRUCTURES} structures in turn",
        [parameter for model in models for parameter in model.parameters],
        lambda: [model.forward() for model in models],
        backward=_each_backward,
        has_floor=False,
    )


def new_structures() -> Model:
    """No graph is ever seen again: nothing but captures."""
    weights = [nn.Parameter(torch.randn(8, 8) / 4) for _ in range(8)]
    seeds = _twice(itertools.count())

    def forward() -> Tensor:
        choose = random.Random(next(seeds))
        value = torch.ones(4, 8)
        for _ in range(100):
            value = torch.tanh(value @ choose.choice(weights))
        return value.sum()

    return Model("new structure each time", list(weights), forward, has_floor=False, changes=True)


def two_threads() -> Model:
    """Two threads that train a model each."""
    models = [deep_small(64) for _ in range(THREADS)]

    def backward(losses: list[Tensor], surround: Surround) -> None:
        def body(loss: Tensor) -> None:
            with surround():
                loss.backward()

        threads = [threading.Thread(target=body, args=(loss,)) for loss in losses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return Model(
        f"{THREADS} threads",
        [parameter for model in models for parameter in model.parameters],
        lambda: [model.forward() for model in models],
        backward=backward,
        has_floor=False,
    )


class _Scaled(torch.autograd.Function):
    """A function in Python with a saved tensor."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(value, scale)
        return value * scale

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        value, scale = ctx.saved_tensors
        return gradient * scale, (gradient * value).sum(0)


def custom_functions(count: int = 50) -> Model:
    layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(count))
    scales = [nn.Parameter(torch.ones(16)) for _ in range(count)]
    batch = torch.randn(4, 16)

    def forward() -> Tensor:
        value = batch
        for layer, scale in zip(layers, scales, strict=True):
            value = _Scaled.apply(layer(value).tanh(), scale)  # type: ignore[no-untyped-call]
        return value.square().mean()

    return Model(f"{count} functions in Python", [*layers.parameters(), *scales], forward, has_floor=False)


def checkpointed(*, use_reentrant: bool) -> Model:
    blocks = nn.ModuleList(
        nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 16)) for _ in range(16)
    )
    batch = torch.randn(4, 16, requires_grad=True)

    def forward() -> Tensor:
        value = batch
        for block in blocks:
            value = checkpoint(block, value, use_reentrant=use_reentrant)
        return value.square().mean()

    name = f"checkpoints, {'reentrant' if use_reentrant else 'by saved tensor hooks'}"
    return Model(name, [batch, *blocks.parameters()], forward, has_floor=False)


def grad_of_inputs() -> Model:
    """``torch.autograd.grad`` of some inputs, as of a penalty on gradients or a solver."""
    model = deep_small(64)
    inputs = model.parameters[::4]

    def backward(loss: Tensor, surround: Surround) -> None:
        with surround():
            gradients = torch.autograd.grad(loss, inputs)
        for leaf, gradient in zip(inputs, gradients, strict=True):
            leaf.grad = gradient

    return Model("autograd.grad with inputs", inputs, model.forward, backward=backward, has_floor=False)


def alike(plans: int) -> Model:
    """Graphs that share 99 % of their steps, so many of them in turn: what near misses cost a look-up."""
    weight = nn.Parameter(torch.ones(4))
    turns = _twice(itertools.cycle(range(plans)))

    def forward() -> Tensor:
        turn = next(turns)
        # The backward begins at the end: what it meets last is what is made first.
        value: Tensor = weight
        for place in range(7):
            value = value.neg() if turn >> place & 1 else value.abs()
        for _ in range(LENGTH):
            value = value * 1.01
        return value.sum()

    return Model(
        f"{plans} plans, 99 % alike", [weight], forward, has_floor=False, warm_up=plans, changes=True
    )


PROGRAMS: tuple[Callable[[], Model], ...] = (
    micro_batches,
    alternating_structures,
    new_structures,
    two_threads,
    custom_functions,
    lambda: checkpointed(use_reentrant=False),
    lambda: checkpointed(use_reentrant=True),
    grad_of_inputs,
    lambda: alike(1),
    lambda: alike(PLANS),
)
