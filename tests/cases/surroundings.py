"""What surrounds a backward: modes, profilers, warnings, training loops, captures inside captures."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.cases.registry import Results, RunBackward, case
from tests.cases.values import applied, data, leaf, noting, raised_by, take_grad


class _Operators(TorchDispatchMode):
    """Notes every operator that runs while it is entered."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._log = log

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        shapes = [str(tuple(one.shape)) for one in args if isinstance(one, Tensor)]
        self._log.append(f"{func} {' '.join(shapes)}")
        return func(*args, **(kwargs or {}))


@case()
def operators_of_a_backward(run_backward: RunBackward) -> Results:
    """A dispatch mode around a backward sees the same operators in the same order on the same shapes."""
    log: list[str] = []
    w, b = leaf(4, 4, seed=1), leaf(4, seed=2)
    for step in range(3):
        x = leaf(3, 4, seed=step)
        h = functional.layer_norm(functional.gelu(functional.linear(x, w, b)), (4,))
        base = h * 1.0
        base[0].mul_(b)
        loss = functional.cross_entropy(base + x, torch.tensor([0, 1, 2])) + h.mean()
        h.register_hook(noting(log, "hook", lambda g: g * 2))
        with _Operators(log):
            run_backward(loss.backward)
    return {"log": log, "w": w.grad, "b": b.grad}


@case()
def profiler_events(run_backward: RunBackward) -> Results:
    """A profiler shows the same events under the same names, nested in the same way."""
    w = leaf(4, 4, seed=1)

    class Named(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> Tensor:
            return t.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            with torch.autograd.profiler.record_function("inside"):
                return gradient * 2

    events: list[str] = []
    for step in range(2):
        h = (data(2, 4, seed=step) @ w).sin()
        h.register_hook(lambda g: g * 2)
        loss = applied(Named, h).sum()
        with torch.autograd.profiler.profile() as profile:
            run_backward(loss.backward)
        for event in profile.function_events:
            parent = event.cpu_parent
            events.append(f"{step} {event.name} in {None if parent is None else parent.name}")
    return {"events": events, "w": w.grad}


@case()
def profiler_shapes_and_sequence_numbers(run_backward: RunBackward) -> Results:
    """Events of nodes carry input shapes and the sequence number that ties them to the forward's operator."""
    x = leaf(3, seed=1)
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        loss = (x.sin() * x).sum()
        run_backward(loss.backward)
    numbers: dict[int, int] = {}
    seen = []
    for event in profile.function_events:
        if event.sequence_nr >= 0:
            number = numbers.setdefault(event.sequence_nr, len(numbers))
            seen.append(f"{event.name} {number} {event.input_shapes} {event.scope}")
    return {"seen": seen}


@case()
def modes_around_and_inside(run_backward: RunBackward) -> Results:
    """Grad mode, inference mode, deterministic mode, default dtype, as hooks see them and as they are afterwards."""
    log: list[str] = []

    def modes(place: str) -> None:
        log.append(
            f"{place}: grad {torch.is_grad_enabled()}, inference {torch.is_inference_mode_enabled()}, "
            f"deterministic {torch.are_deterministic_algorithms_enabled()}, {torch.get_default_dtype()}"
        )

    x = leaf(3, seed=1)
    results: Results = {}
    surroundings = {
        "plain": torch.enable_grad(),
        "no grad": torch.no_grad(),
        "inference": torch.inference_mode(),
    }
    for name, surrounding in surroundings.items():
        h = x.sin() * 2
        h.register_hook(lambda g, name=name: modes(f"{name} inner"))
        x.register_post_accumulate_grad_hook(lambda p, name=name: modes(f"{name} accumulated"))
        loss = h.sum()
        with surrounding:
            try:
                run_backward(loss.backward)
            except RuntimeError as error:
                log.append(str(error))
            modes(f"{name} after")
        results[name] = None if x.grad is None else (x.grad.is_inference(), x.grad.clone())
        x.grad = None
    return {**results, "log": log}


@case()
def deterministic_mode(run_backward: RunBackward) -> Results:
    """Deterministic algorithms, demanded or warned about, in the backwards of indexing, scattering and pooling."""
    results: Results = {}
    for warn_only in (False, True):
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        x, w = leaf(1, 2, 6, 6, seed=1), leaf(5, 3, seed=2)
        index = torch.tensor([0, 1, 1, 4, 0])
        scattered = torch.zeros(5, 3).index_add(0, index, w).index_put((index,), w, accumulate=True)
        loss = (
            functional.interpolate(x, scale_factor=2, mode="bilinear").sin().sum()
            + functional.max_pool2d(x, 2).sum()
            + w[index].pow(2).sum()
            + scattered.exp().sum()
            + w.gather(0, index[:, None]).sum()
        )
        try:
            run_backward(loss.backward)
        except RuntimeError as error:
            results[f"error {warn_only}"] = str(error)
        results[f"gradients {warn_only}"] = (x.grad, w.grad)
    torch.use_deterministic_algorithms(False)
    return results


@case()
def warnings_inside_backward(run_backward: RunBackward) -> Results:
    """Warnings of hooks: in their place, once where the filter says so, as errors where it says that."""
    log: list[str] = []
    x = leaf(3, seed=1)
    h = x.sin()

    def warn(gradient: Tensor) -> None:
        log.append("hook")
        warnings.warn("a hook warns", RuntimeWarning, stacklevel=1)
        _ = h.grad  # torch itself warns of this one

    h.register_hook(warn)
    loss = h.sum()
    for _ in range(2):
        run_backward(lambda: loss.backward(retain_graph=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        results = raised_by(run_backward, lambda: loss.backward(retain_graph=True))
    run_backward(loss.backward)
    return {**results, "log": log, "x": x.grad}


@case(max_captures=2)
def training_loop(run_backward: RunBackward) -> Results:
    """A small network with dropout, batch norm, clipping and a scheduler over many steps of changing batches."""
    torch.manual_seed(5)
    model = torch.nn.Sequential(
        torch.nn.Conv1d(2, 4, 3, padding=1),
        torch.nn.BatchNorm1d(4),
        torch.nn.ReLU(inplace=True),
        torch.nn.Dropout(0.3),
        torch.nn.Flatten(),
        torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(20, 3)),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    losses = []
    for step in range(12):
        x = data(2 + step % 4, 2, 5, seed=step)
        loss = functional.cross_entropy(model(x), torch.arange(x.shape[0]) % 3)
        optimizer.zero_grad(set_to_none=step % 3 != 0)
        run_backward(loss.backward)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "parameters": list(model.parameters())}


@case()
def recurrent_network(run_backward: RunBackward) -> Results:
    """An LSTM over sequences of other lengths, truncated backward through time, states kept over steps."""
    torch.manual_seed(5)
    model = torch.nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    state: tuple[Tensor, Tensor] | None = None
    out: list[object] = []
    for step, length in enumerate((3, 5, 3, 1)):
        y, state = model(data(length, 2, 3, seed=step), state)
        run_backward(y.pow(2).sum().backward)
        state = (state[0].detach(), state[1].detach())
        out += [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return {"out": out}


@case()
def captures_inside_captures(run_backward: RunBackward) -> Results:
    """Backwards inside hooks that are captured in turn, three deep, through the same leaf."""
    log: list[str] = []
    x = leaf(3, seed=1)

    def level(depth: int) -> None:
        with torch.enable_grad():
            h = x.sin() * (depth + 1.0)
            loss = h.sum()
        h.register_hook(lambda g: nested(depth))
        run_backward(loss.backward)
        log.append(f"{depth} done")

    def nested(depth: int) -> None:
        log.append(f"{depth} hook")
        if depth:
            level(depth - 1)

    for _ in range(2):
        run_backward(lambda: level(3))
    return {"log": log, "x": x.grad}


class _Functions(TorchFunctionMode):
    """Notes every function of torch's that is called while it is entered."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self._log = log

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._log.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


@case()
def function_mode_around_backward(run_backward: RunBackward) -> Results:
    """A function mode sees the call of backward and what hooks call."""
    log: list[str] = []
    x = leaf(3, seed=1)
    h = x.sin()
    h.register_hook(lambda g: torch.mul(g, 2))
    loss = h.sum()
    with _Functions(log):
        run_backward(loss.backward)
    return {"log": log, "x": x.grad}


@case()
def multithreading_switched_off(run_backward: RunBackward) -> Results:
    """set_multithreading_enabled(False) around a backward, whose hooks run further ones."""
    log: list[bool] = []
    x = leaf(3, seed=1)
    h = x.sin()

    def nested(gradient: Tensor) -> None:
        log.append(torch._C._is_multithreading_enabled())
        with torch.enable_grad():
            (x * 2).sum().backward()

    h.register_hook(nested)
    out = []
    for enabled in (False, True):
        with torch.autograd.set_multithreading_enabled(enabled):
            run_backward(lambda: h.sum().backward(retain_graph=True))
        out.append(take_grad(x))
    return {"log": log, "out": out}
