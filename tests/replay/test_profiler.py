"""What a profiler sees of a captured backward, and how much memory it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity

from tests.replay.differential import Run, apply, assert_same_as_eager
from tests.replay.test_functions import Product


def _model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(torch.tanh(x @ w) + x, (4,))


WORLDS: dict[str, Callable[[Run, torch.Tensor, torch.Tensor], list[torch.Tensor]]] = {
    "model": lambda run, x, w: [_model(x, w).sum()],
    "several roots": lambda run, x, w: [_model(x, w).sum(), w.sum()],
    "function": lambda run, x, w: [apply(Product, x @ w, x, 2.0).sum()],
    "in place on a view": lambda run, x, w: [_written(x * 1, w).sum()],
}


def _written(base: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    base[0].mul_(w[0])
    return base


def _leaves() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)


ENGINE = "autograd::engine::evaluate_function: "
"""How the engine names the event around each node, in which hooks and sums lie too."""


@pytest.mark.parametrize("by_engine", [False, True], ids=["operators and nodes", "around the nodes"])
@pytest.mark.parametrize("hooks", [False, True])
@pytest.mark.parametrize("profiler", ["torch.profiler", "autograd profiler"])
@pytest.mark.parametrize("world", WORLDS)
def test_events_have_the_engines_names_and_counts(
    world: str, profiler: str, hooks: bool, by_engine: bool
) -> None:
    def scenario(run: Run) -> object:
        x, w = _leaves()
        losses = WORLDS[world](run, x, w)
        if hooks:
            x.register_hook(lambda grad: grad * 2)
        made: Any = (
            torch.profiler.profile(activities=[ProfilerActivity.CPU])
            if profiler == "torch.profiler"
            else torch.autograd.profiler.profile()
        )
        with run.backward(), made as profile:
            torch.autograd.backward(losses)
        events = profile.events() if profiler == "torch.profiler" else profile.function_events
        names = [event.name for event in events if event.name.startswith(ENGINE) == by_engine]
        return dict(sorted(Counter(names).items()))

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("world", WORLDS)
def test_events_lie_inside_the_event_of_their_node(world: str) -> None:
    def scenario(run: Run) -> object:
        x, w = _leaves()
        losses = WORLDS[world](run, x, w)
        with run.backward(), torch.profiler.profile(activities=[ProfilerActivity.CPU]) as profile:
            torch.autograd.backward(losses)

        def path(event: Any) -> str:
            return event.name if event.cpu_parent is None else f"{path(event.cpu_parent)} > {event.name}"

        paths = [path(event) for event in profile.events() if not event.name.startswith(ENGINE)]
        return [">".join(one for one in path.split(" > ") if not one.startswith(ENGINE)) for path in paths]

    assert_same_as_eager(scenario)


def test_events_tell_the_forward_operator_by_its_sequence_number() -> None:
    def scenario(run: Run) -> object:
        x, w = _leaves()
        with run.backward(), torch.profiler.profile(activities=[ProfilerActivity.CPU]) as profile:
            _model(x, w).sum().backward()
        numbers = [event.sequence_nr for event in profile.events() if event.sequence_nr >= 0]
        return [
            (event.name, event.sequence_nr - min(numbers), event.fwd_thread >= 0)
            for event in profile.events()
            if event.sequence_nr >= 0 and not event.name.startswith(ENGINE)
        ]

    assert_same_as_eager(scenario)


def _peak_bytes(backward: Callable[[], None]) -> int:
    """The most that was allocated at one time of what ``backward`` itself allocates.

    What was there before is left out, whose end the profiler tells only by chance: it notes the addresses of what is
    allocated while it records, and takes a later tensor for one of them that happens to lie where an earlier recording
    left one, such as a gradient.
    """
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profile:
        backward()
    recorded: Any = profile.profiler
    to_do = list(recorded.kineto_results.experimental_event_tree())
    changes = []
    while to_do:
        event = to_do.pop()
        to_do += event.children
        if event.tag == _EventType.Allocation:
            changes.append(event)
    allocated: dict[int, int] = {}
    peak = 0
    for event in sorted(changes, key=lambda event: event.start_time_ns):
        address, size = event.extra_fields.ptr, event.extra_fields.alloc_size
        if size > 0:
            assert address not in allocated, "allocated twice: an event was lost"
            allocated[address] = size
        else:
            allocated.pop(address, None)
        peak = max(peak, sum(allocated.values()))
    assert peak > 0, "no allocation was recorded"
    return peak


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("kind", ["chain", "fan out", "fan in", "wide", "hooks", "grad of middle"])
def test_peak_memory_is_the_engines(kind: str, create_graph: bool) -> None:
    def scenario(run: Run) -> object:
        def build() -> Callable[[], None]:
            x = torch.randn(256, 256, requires_grad=True)
            values = [x.sin()]
            for _ in range(8):
                if kind in ("fan out", "fan in"):
                    values.append(values[-1].sin() + values[0].cos())
                elif kind == "wide":
                    values.append(x.sin() * len(values))
                else:
                    values.append(values[-1].tanh())
                if kind == "hooks":
                    values[-1].register_hook(lambda grad: grad * 2)
            loss = torch.stack(values).sum() if kind in ("wide", "fan in") else values[-1].sum()
            middle = values[3]
            del values

            def backward() -> None:
                with run.backward():
                    if kind == "grad of middle":
                        torch.autograd.grad(loss, [middle, x], create_graph=create_graph)
                    else:
                        loss.backward(create_graph=create_graph)

            return backward

        return _peak_bytes(build())

    assert_same_as_eager(scenario)
