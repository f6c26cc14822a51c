"""Random forward programs: graphs with shared values, views, in-place operations, several outputs and broadcasts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch

Operation = Callable[[random.Random, list[torch.Tensor]], torch.Tensor]


@dataclass(frozen=True)
class Program:
    """A program that was run once: its leaves and the scalar that depends on them."""

    leaves: tuple[torch.Tensor, ...]
    loss: torch.Tensor


def _pick(rng: random.Random, values: list[torch.Tensor]) -> torch.Tensor:
    return values[rng.randrange(len(values))]


def _split(rng: random.Random, values: list[torch.Tensor]) -> torch.Tensor:
    parts = _pick(rng, values).split(2, dim=-1)
    return torch.cat([parts[1], parts[0]], dim=-1)


def _in_place(rng: random.Random, values: list[torch.Tensor]) -> torch.Tensor:
    return (_pick(rng, values) * 1.5).add_(_pick(rng, values)).clamp_(-3, 3)


def _normalized(rng: random.Random, values: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.functional.layer_norm(_pick(rng, values), (4,))


OPERATIONS: tuple[Operation, ...] = (
    lambda rng, values: _pick(rng, values) + _pick(rng, values),
    lambda rng, values: _pick(rng, values) * _pick(rng, values),
    lambda rng, values: _pick(rng, values) - _pick(rng, values).mean(dim=0, keepdim=True),
    lambda rng, values: _pick(rng, values) @ _pick(rng, values).mT.softmax(-1) @ _pick(rng, values),
    lambda rng, values: torch.tanh(_pick(rng, values)),
    lambda rng, values: _pick(rng, values).view(2, 8).view(4, 4),
    lambda rng, values: _pick(rng, values)[:, :1] * _pick(rng, values),
    lambda rng, values: torch.where(_pick(rng, values) > 0, _pick(rng, values), _pick(rng, values)[0]),
    lambda rng, values: torch.stack([_pick(rng, values), _pick(rng, values)]).max(dim=0).values,
    _split,
    _in_place,
    _normalized,
)


def run_program(seed: int, length: int = 25) -> Program:
    """The program of a seed. All values are 4 x 4 matrices; the last ones are summed to the loss."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    leaves = tuple(torch.randn(4, 4, generator=generator).requires_grad_() for _ in range(rng.randint(1, 4)))
    values = list(leaves)
    for _ in range(length):
        values.append(rng.choice(OPERATIONS)(rng, values))
    return Program(leaves, torch.stack([value.sum() for value in values[-3:]]).sum())
