"""The ways in which a model's backward is run, timed round by round beside each other, and compared bit for bit."""

import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from torch import Tensor

from tools.benchmarks._models import Model, Surround, clear, same_bits

Way = Callable[[Model, Any], object]
"""Runs what is timed of a model on what its forward gave."""


def inside(surround: Surround) -> Way:
    return lambda model, work: model.backward(work, surround)


eager: Way = inside(nullcontext)


def alternate(model: Model, ways: dict[str, Way], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append(timed(model, way))
    return times


def ratio(times: dict[str, list[float]], name: str) -> float:
    return statistics.median(one / other for one, other in zip(times[name], times["eager"], strict=True))


def compare(model: Model, way: Way, expected: list[Tensor]) -> None:
    if model.changes:
        expected = gradients(model, eager)
    actual = gradients(model, way)
    if len(actual) != len(expected) or not all(map(same_bits, expected, actual)):
        raise AssertionError(f"{model.name}: gradients differ from eager's")


def gradients(model: Model, way: Way) -> list[Tensor]:
    clear(model)
    way(model, model.forward())
    return [parameter.grad for parameter in model.parameters if parameter.grad is not None]


def timed(model: Model, way: Way) -> float:
    clear(model)
    work = model.forward()
    start = time.perf_counter()
    way(model, work)
    return (time.perf_counter() - start) * 1e3
