"""A captured backward never holds more memory of tensors than eager's does, to the byte."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import backbind
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch.utils.checkpoint import checkpoint

from tests.compiled import folder_of_run
from tests.processes import run_python
from tests.replay.programs.machine import run_program
from tests.replay.programs.program import Program
from tests.replay.programs.random_programs import programs
from tools.benchmarks._meters import Taken, TensorMeter
from tools.benchmarks._models import MODELS, clear

Backward = Callable[[], object]
World = Callable[[], Backward]
"""Makes a graph, and gives the call that runs a backward through it."""

pytestmark = pytest.mark.slow  # compiling the meter takes its time

SIZE = 64


@pytest.fixture(scope="module")
def meter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TensorMeter]:
    """The meter, whose allocator is in torch's place as long as this module's tests run."""
    made = TensorMeter(folder_of_run(tmp_path_factory) / "allocations")
    yield made
    made.stop()


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (SIZE, SIZE)), requires_grad=True)


def backward_of(loss: torch.Tensor, **keywords: Any) -> Backward:
    return partial(loss.backward, **keywords)


def chain() -> Backward:
    x = leaf()
    value = x
    for _ in range(10):
        value = value.sin() * 2
    return backward_of(value.sum())


def sums_of_many_gradients() -> Backward:
    x = leaf()
    hidden = x.exp()
    return backward_of(torch.stack([(hidden * i).sum() for i in range(8)]).sum())


def one_leaf_used_many_times() -> Backward:
    w = leaf()
    value = torch.ones(4, SIZE)
    for _ in range(8):
        value = (value @ w).tanh()
    return backward_of(value.sum())


def gradients_that_are_there() -> Backward:
    x, y = leaf(), leaf()
    x.grad, y.grad = torch.ones(SIZE, SIZE), torch.ones(SIZE, SIZE)
    return backward_of((x @ y).sin().sum())


def broadcast() -> Backward:
    x, bias, scale = leaf(), leaf(SIZE), leaf(SIZE, 1)
    return backward_of(((x + bias) * scale).exp().sum())


def views() -> Backward:
    x = leaf()
    a, b = x.t().reshape(2, -1).unbind()
    return backward_of((a.view(SIZE, -1) @ b.view(-1, SIZE)).narrow(0, 2, 8).sum())


def in_place_on_views() -> Backward:
    x, y = leaf(), leaf()
    base = x * 1
    base[: SIZE // 2].mul_(y[: SIZE // 2])
    base[:, 3].add_(1)
    return backward_of((base * base).sum())


def cat_and_split() -> Backward:
    x, y = leaf(), leaf()
    parts = torch.cat([x.sin(), y.cos()]).split(SIZE // 4)
    return backward_of(torch.stack([part.sum() for part in parts[::2]]).sum())


def expanded_root() -> Backward:
    x = leaf()
    value = x.exp()
    return partial(value.backward, torch.ones(()).expand(SIZE, SIZE))


def retained() -> Backward:
    x = leaf()
    loss = (x.exp() * x.sin()).sum()

    def run() -> None:
        loss.backward(retain_graph=True)
        loss.backward(retain_graph=True)
        loss.backward()

    return run


def twice_differentiated() -> Backward:
    x = leaf()
    loss = (x.tanh() * x).sum()

    def run() -> None:
        (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
        gradient.square().sum().backward()

    return run


def handed_out() -> Backward:
    x, y = leaf(), leaf()
    hidden = (x @ y).relu()
    loss = hidden.square().sum()
    return lambda: torch.autograd.grad(loss, (x, hidden))


def some_inputs() -> Backward:
    x, y = leaf(), leaf()
    return backward_of(((x @ y).sin() * x.exp()).sum(), inputs=[y])


def hooks() -> Backward:
    x = leaf()
    value = x
    for _ in range(4):
        value = value.sin()
        value.register_hook(lambda gradient: gradient * 2)
    assert value.grad_fn is not None
    value.grad_fn.register_prehook(lambda gradients: None)
    value.grad_fn.register_hook(lambda results, gradients: None)
    x.register_post_accumulate_grad_hook(lambda one: setattr(one, "grad", None))
    value.retain_grad()
    return backward_of(value.sum())


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        result: torch.Tensor = gradient * 2 * x
        return result


def python_functions() -> Backward:
    value: Any = leaf()
    apply: Any = Scaled.apply
    for _ in range(4):
        value = apply(value).sin()
    return backward_of(value.sum())


def checkpoints(reentrant: bool) -> Backward:
    x = leaf()

    def part(value: torch.Tensor) -> torch.Tensor:
        return value.sin().exp().tanh()

    value: Any = x
    for _ in range(3):
        value = checkpoint(part, value, use_reentrant=reentrant)
    return backward_of(value.sum())


def sparse_gradients() -> Backward:
    table = leaf(200, 16)
    places = torch.arange(10)
    one = torch.nn.functional.embedding(places, table, sparse=True)
    other = torch.nn.functional.embedding(places * 3, table, sparse=True)
    return backward_of((one * other).sum())


def other_dtypes() -> Backward:
    x, y = leaf(), leaf().detach().double().requires_grad_()
    return backward_of((x.double() * y).sum() + (x.half().float() * x).sum())


def complex_numbers() -> Backward:
    x = torch.randn(SIZE, SIZE, dtype=torch.complex64, requires_grad=True)
    return backward_of((x.conj() @ x).abs().sum())


def an_lstm() -> Backward:
    module = torch.nn.LSTM(16, 16, num_layers=2)
    output: torch.Tensor = module(torch.randn(20, 4, 16))[0]
    return backward_of(output.sum())


WORLDS: dict[str, World] = {
    world.__name__: world
    for world in (
        chain,
        sums_of_many_gradients,
        one_leaf_used_many_times,
        gradients_that_are_there,
        broadcast,
        views,
        in_place_on_views,
        cat_and_split,
        expanded_root,
        retained,
        twice_differentiated,
        handed_out,
        some_inputs,
        hooks,
        python_functions,
        sparse_gradients,
        other_dtypes,
        complex_numbers,
        an_lstm,
    )
} | {
    "checkpoints": partial(checkpoints, False),
    "reentrant checkpoints": partial(checkpoints, True),
}


def taken(meter: TensorMeter, world: World, surround: AbstractContextManager[object]) -> Taken:
    torch.manual_seed(0)
    backward = world()
    with surround:
        meter.start()
        backward()
    return meter.read()


def assert_not_above_eager(meter: TensorMeter, world: World) -> None:
    taken(meter, world, nullcontext())  # what is set up once, such as tables of a kernel, is nobody's
    eager = taken(meter, world, nullcontext())
    context = backbind.capture()
    captured, replayed = taken(meter, world, context), taken(meter, world, context)
    assert eager.peak > 0
    assert context.session.stats.captures > 0
    assert context.session.stats.replays > 0
    assert captured.peak <= eager.peak
    assert replayed.peak <= eager.peak
    assert replayed.count <= eager.count


@pytest.mark.parametrize("world", WORLDS)
def test_backwards_of_each_kind(meter: TensorMeter, world: str) -> None:
    assert_not_above_eager(meter, WORLDS[world])


@pytest.mark.parametrize("number", range(len(MODELS)))
def test_models_of_the_benchmarks(meter: TensorMeter, number: int) -> None:
    model = MODELS[number]()

    def world() -> Backward:
        clear(model)
        return backward_of(model.forward())

    assert_not_above_eager(meter, world)


def peak_of(meter: TensorMeter, program: Program, surround: AbstractContextManager[object]) -> int:
    """The peak of a whole program, in a thread of its own.

    The engine keeps what was ready when a backward raised, with its graph, in a queue of the thread. A later backward
    would seem to need the less for freeing it.
    """

    def run() -> tuple[int, int]:
        meter.start()
        with surround:
            run_program(program)
        return meter.read().peak, threading.get_native_id()

    with ThreadPoolExecutor(1) as thread:
        peak, thread_of_run = thread.submit(run).result()
    # Python calls a thread ended before the system has freed what is local to it, that queue among it.
    while Path(f"/proc/self/task/{thread_of_run}").exists():
        time.sleep(0)
    return peak


@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(program=programs)
def test_random_programs(meter: TensorMeter, program: Program) -> None:
    backbind.reset()
    peak_of(meter, program, nullcontext())
    eager = peak_of(meter, program, nullcontext())
    context = backbind.capture()
    assert peak_of(meter, program, context) <= eager
    assert peak_of(meter, program, context) <= eager


def test_a_gradient_that_is_kept_would_be_seen(meter: TensorMeter) -> None:
    kept: list[torch.Tensor] = []

    def world(keeps: bool) -> Backward:
        value = leaf().sin().sin()
        value.register_hook(lambda gradient: kept.append(gradient) if keeps else None)
        # The graph stays, so that no saved tensor is freed in the gradient's stead.
        return backward_of(value.sin().sum(), retain_graph=True)

    one = taken(meter, partial(world, False), backbind.capture())
    other = taken(meter, partial(world, True), backbind.capture())
    assert other.peak == one.peak + SIZE * SIZE * 4


def test_memory_of_one_allocator_may_be_given_back_to_the_other() -> None:
    """oneDNN's tensors ask for torch's allocator anew when they give their memory back."""
    program = (
        "import torch\n"
        "from tools.benchmarks._meters import TensorMeter\n"
        "before = torch.randn(64, 64).to_mkldnn()\n"
        "meter = TensorMeter()\n"
        "meter.start()\n"
        "del before\n"
        "assert meter.held() == 0\n"
        "behind = torch.randn(64, 64).to_mkldnn()\n"
        "assert meter.held() == 64 * 64 * 4\n"
        "meter.stop()\n"
        "del behind\n"
        "meter.start()\n"
        "torch.empty(100)\n"
        "print('alive')"
    )
    assert run_python("-c", program).stdout == "alive\n"


def test_the_meter_counts_what_torch_is_asked_for(meter: TensorMeter) -> None:
    meter.start()
    assert meter.read() == Taken(0, 0)
    one = torch.empty(10)
    two = torch.empty(0)
    three = torch.empty(5, dtype=torch.float64)
    del one, two
    four = torch.empty(3)
    assert meter.read() == Taken(80, 3)
    del three, four
    assert meter.read() == Taken(80, 3)
    meter.start()
    assert meter.read() == Taken(0, 0)
