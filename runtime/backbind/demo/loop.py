"""An ordinary training loop, run twice at the same time: one network by the autograd engine, its twin under capture."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import torch
from torch import nn

from backbind._capture import Capture
from backbind.demo.bits import all_equal_bits
from backbind.demo.network import DigitNetwork


@dataclass
class Trainee:
    """One network with what it is trained with, and a list of what its hooks saw.

    It has a hook on every parameter, one on each module whose input has a gradient, and one that changes a gradient.
    """

    network: DigitNetwork = field(default_factory=DigitNetwork)
    hook_calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=3e-3)
        for name, parameter in self.network.named_parameters():
            parameter.register_post_accumulate_grad_hook(lambda _, name=name: self._note(name))
        for name in ("batch_norm", "attention", "layer_norm", "classifier"):
            module = self.network.get_submodule(name)
            module.register_full_backward_hook(lambda *_, name=name: self._note(name))
        self.network.classifier.get_parameter("0.weight").register_hook(self._clip)

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> Timed:
        """One step of training: forward, backward, optimizer."""
        started = time.perf_counter()
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.network(images), labels)
        before = time.perf_counter()
        loss.backward()
        after = time.perf_counter()
        self.optimizer.step()
        return Timed(loss.detach(), after - before, time.perf_counter() - started)

    def _note(self, name: str) -> None:
        self.hook_calls.append(name)

    def _clip(self, gradient: torch.Tensor) -> torch.Tensor:
        self._note("a hook that changes the gradient")
        return gradient.clamp(-0.1, 0.1)


@dataclass(frozen=True)
class Timed:
    """What one step gave and took, in seconds."""

    loss: torch.Tensor
    backward: float
    whole: float


@dataclass(frozen=True)
class StepPair:
    """The same step on both sides."""

    number: int
    eager: Timed
    captured: Timed
    equal_bits: bool
    """Loss and all gradients."""


def twins() -> tuple[Trainee, Trainee]:
    """Two trainees that begin with the same weights."""
    eager, captured = Trainee(), Trainee()
    captured.network.load_state_dict(eager.network.state_dict())
    return eager, captured


def warm_up(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    """One step by the engine, which starts its threads and fills caches, so that neither side pays for that."""
    Trainee().step(*batch)


def train_both(
    eager: Trainee,
    captured: Trainee,
    batches: Iterable[tuple[torch.Tensor, torch.Tensor]],
    context: Capture,
) -> Iterator[StepPair]:
    """Train both on the same batches, step by step, so that whatever else the machine does meets both alike."""
    for number, batch in enumerate(batches):
        # By turns, because the second one finds the batch in the processor's caches.
        theirs = eager.step(*batch) if number % 2 == 0 else None
        with context:
            ours = captured.step(*batch)
        theirs = theirs or eager.step(*batch)
        gradients = zip(eager.network.parameters(), captured.network.parameters(), strict=True)
        same = all_equal_bits([(theirs.loss, ours.loss), *((one.grad, two.grad) for one, two in gradients)])
        yield StepPair(number, theirs, ours, same)


def same_weights(eager: Trainee, captured: Trainee) -> bool:
    """Whether all weights and statistics are the same to the last bit."""
    ours, theirs = captured.network.state_dict(), eager.network.state_dict()
    return all_equal_bits((ours[name], theirs[name]) for name in theirs)
