"""What is switched on around a backward, or kept of its graph: retained graphs, higher orders, errors, modes."""

from __future__ import annotations

import contextlib
import gc
import traceback
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.replay.differential import Expected, Raised, Run, apply, assert_same_as_eager


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def test_a_kept_graph_runs_again_and_a_freed_one_does_not() -> None:
    def scenario(run: Run) -> object:
        x, y = leaf(3), leaf(3)
        loss = (x.exp() * y).sum()
        out: list[object] = []
        for keep in (True, True, False, False, True):
            out += [run.attempt(lambda keep=keep: loss.backward(retain_graph=keep)), x.grad]  # type: ignore[misc]
        return out

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("how", ["backward", "grad", "inputs", "half"])
def test_freed_twice(how: str) -> None:
    def scenario(run: Run) -> object:
        x, y = leaf(3), leaf(3)
        hidden = x.exp() * y
        loss = hidden.sin().sum()
        calls: dict[str, Callable[[], object]] = {
            "backward": loss.backward,
            "grad": lambda: torch.autograd.grad(loss, [hidden]),
            "inputs": lambda: loss.backward(inputs=[y]),
            "half": lambda: (hidden * 2).sum().backward(),
        }
        y.register_hook(lambda grad: run.note(grad))
        return run.attempt(calls[how]), run.attempt(loss.backward), run.attempt(calls[how]), x.grad, y.grad

    assert_same_as_eager(scenario)


CHANGES: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "output": lambda x, hidden: hidden.detach().add_(1),
    "output's view": lambda x, hidden: hidden.detach()[:1].zero_(),
    "leaf": lambda x, hidden: x.detach().mul_(2),
    "through .data": lambda x, hidden: hidden.data.mul_(2),
    "out=": lambda x, hidden: torch.neg(x.detach(), out=hidden.detach()),
    "set_": lambda x, hidden: x.detach().set_(torch.ones(3)),  # type: ignore[call-overload]
    "resize": lambda x, hidden: hidden.detach().storage().resize_(0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_modified_in_place_is_found_on_a_hit_too(change: str) -> None:
    def scenario(run: Run) -> object:
        out: list[object] = []
        for is_changed in (False, True, False):
            x = leaf(3)
            hidden = x.exp()
            loss = (hidden * x).sum()
            if is_changed and change != "resize":
                CHANGES[change](x, hidden)
            out += [run.attempt(loss.backward), x.grad]
        return out

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("by", ["grad", "backward"])
def test_higher_orders(order: int, by: str) -> None:
    def scenario(run: Run) -> object:
        x, w = leaf(3, 4), leaf(4, 2)
        value = (torch.nn.functional.gelu(x @ w).softmax(-1) ** 3).sum()
        out: list[object] = []
        with run.backward():
            for i in range(order):
                if by == "grad":
                    grads: Any = torch.autograd.grad(value, [x, w], create_graph=True)
                else:
                    x.grad = w.grad = None
                    value.backward(create_graph=True)
                    grads = (x.grad, w.grad)
                out.append(grads)
                value = grads[0].pow(2).sum() + grads[1].sin().sum() * i
            out.append(torch.autograd.grad(value, [x, w]))
        return out

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("check_nan", [True, False])
@pytest.mark.parametrize("where", ["nan", "nan then masked", "hook", "function"])
def test_anomaly_mode(where: str, check_nan: bool) -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("in the function")

    def scenario(run: Run) -> object:
        with warnings.catch_warnings(), torch.autograd.detect_anomaly(check_nan=check_nan):
            warnings.simplefilter("always")
            x = torch.zeros(3, requires_grad=True)
            if where == "hook":
                hidden = x.exp()
                hidden.register_hook(lambda grad: 1 / 0)
            elif where == "function":
                hidden = apply(Fails, x).exp()
            else:
                hidden = x.sqrt() * 0.0
            if where == "nan then masked":
                hidden = torch.where(x > 0, hidden, x)
            return run.attempt(hidden.sum().backward), x.grad

    assert_same_as_eager(scenario)


def test_anomaly_mode_entered_around_the_backward_alone() -> None:
    def scenario(run: Run) -> object:
        x = torch.zeros(3, requires_grad=True)
        loss = (x.sqrt() * 0).sum()
        with torch.autograd.set_detect_anomaly(True):
            return run.attempt(loss.backward)

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("failing", ["hook", "function", "freed", "callback"])
def test_traceback_of_an_error(failing: str) -> None:
    def scenario(run: Run) -> object:
        x = leaf(3)
        hidden = x.exp()

        def fails(*_: object) -> None:
            raise ValueError("here")

        if failing == "hook":
            hidden.register_hook(fails)
        elif failing == "callback":
            engine: Any = torch.autograd.Variable._execution_engine
            hidden.register_hook(lambda grad: engine.queue_callback(fails))
        elif failing == "freed":
            hidden.sum().backward()
        else:

            class Fails(torch.autograd.Function):
                forward = staticmethod(lambda ctx, x: x.clone())
                backward = staticmethod(lambda ctx, grad: fails())

            hidden = apply(Fails, hidden)
        try:
            with run.backward():
                hidden.sum().backward()
        except Exception as error:
            names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
            return Raised.of(error), names, error.__context__ is None
        return None

    assert_same_as_eager(scenario)


AROUND: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "nothing": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "inference mode": torch.inference_mode,
    "autocast bfloat16": lambda: torch.autocast("cpu", torch.bfloat16),
    "autocast float16": lambda: torch.autocast("cpu", torch.float16),
    "force original view tracking": lambda: torch.autograd.grad_mode._force_original_view_tracking(True),
    "no multithreading": lambda: torch.autograd.set_multithreading_enabled(False),
    "saved tensors hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda x: x * 1, lambda x: x * 1),
    "saved tensors hooks disabled": lambda: torch.autograd.graph.disable_saved_tensors_hooks("not here"),
    "save on cpu": torch.autograd.graph.save_on_cpu,
    "forward ad level": torch.autograd.forward_ad.dual_level,
    "below autograd": torch._C._AutoDispatchBelowAutograd,
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("forward_too", [False, True])
@pytest.mark.parametrize("around", AROUND)
def test_a_mode_around_the_backward(around: str, forward_too: bool, create_graph: bool) -> None:
    def scenario(run: Run) -> object:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.GELU())
        x = leaf(3, 4)
        x.register_hook(
            lambda grad: run.note(grad, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"))
        )
        out: list[object] = []
        with AROUND[around]() if forward_too else contextlib.nullcontext():
            loss = model(x).sum()
        if not loss.requires_grad:
            return None
        with AROUND[around]():
            out.append(run.attempt(lambda: loss.backward(retain_graph=True, create_graph=create_graph)))
            out.append(run.attempt(lambda: torch.autograd.grad(loss, [x], create_graph=create_graph)))
        return out, x.grad, [p.grad for p in model.parameters()]

    has_backward = not (forward_too and around in ("no_grad", "inference mode", "below autograd"))
    assert_same_as_eager(scenario, Expected(captures=has_backward))


@pytest.mark.parametrize("warn_only", [False, True])
def test_deterministic_mode(warn_only: bool) -> None:
    def scenario(run: Run) -> object:
        x = leaf(6)
        # What was put over has no gradient, and putting zeros there is not deterministic.
        loss = x.put(torch.tensor([1, 4]), torch.zeros(2)).sum()
        before = (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )
        torch.use_deterministic_algorithms(True, warn_only=warn_only)
        try:
            out = run.attempt(loss.backward)
            assert isinstance(out, Raised) != warn_only
            return out, x.grad
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])

    assert_same_as_eager(scenario)


def test_default_dtype() -> None:
    def scenario(run: Run) -> object:
        x = leaf(6)
        loss = (x.mean() + x.std()) / 3
        torch.set_default_dtype(torch.float64)
        try:
            x.register_hook(lambda grad: run.note(torch.ones(1)))
            return run.attempt(loss.backward), x.grad
        finally:
            torch.set_default_dtype(torch.float32)

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("roots", [1, 2])
def test_a_dispatch_mode_sees_the_same_operators(roots: int, create_graph: bool) -> None:
    def scenario(run: Run) -> object:
        class Listing(TorchDispatchMode):
            def __init__(self) -> None:
                super().__init__()  # type: ignore[no-untyped-call]

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                run.note(str(func))
                return func(*args, **(kwargs or {}))

        x, w = leaf(3, 4), leaf(4, 4)
        w.grad = torch.zeros(4, 4)
        hidden = torch.nn.functional.layer_norm(x @ w + x, (4,))
        losses = [hidden.sum(), hidden.sin().mean()][:roots]
        x.register_hook(lambda grad: grad * 2)
        with run.backward(), Listing():
            torch.autograd.backward(losses, create_graph=create_graph)
        return x.grad, w.grad

    assert_same_as_eager(scenario)


def test_a_function_mode_sees_the_same_calls() -> None:
    def scenario(run: Run) -> object:
        class Listing(TorchFunctionMode):
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                run.note(getattr(func, "__name__", str(func)))
                return func(*args, **(kwargs or {}))

        x = leaf(3, 4)
        x.register_hook(lambda grad: grad * 2)
        loss = (x * 2).tanh().sum()
        with run.backward(), Listing():
            loss.backward()
        return x.grad

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("retain_graph", [False, True])
def test_saved_values_are_freed_when_the_engine_frees_them(retain_graph: bool) -> None:
    def scenario(run: Run) -> object:
        packed: list[weakref.ref[Any]] = []

        class Box:
            def __init__(self, tensor: torch.Tensor) -> None:
                self.tensor = tensor

        def pack(tensor: torch.Tensor) -> Box:
            packed.append(weakref.ref(box := Box(tensor)))
            return box

        def unpack(box: Box) -> torch.Tensor:
            run.note("unpack", [one() is box for one in packed], [one() is None for one in packed])
            return box.tensor

        x = leaf(3)
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            hidden = x.exp()
            loss = (hidden.sin() * hidden).cos().sum()
        gradients: list[weakref.ref[torch.Tensor]] = []

        def look(grad: torch.Tensor) -> None:
            run.note("hook", [one() is None for one in packed], [one() is None for one in gradients])
            gradients.append(weakref.ref(grad))

        x.register_hook(look)
        hidden.register_hook(look)
        del hidden
        gc.disable()
        try:
            with run.backward():
                loss.backward(retain_graph=retain_graph)
            run.note([one() is None for one in packed], [one() is None for one in gradients])
            del loss
            run.note([one() is None for one in packed])
        finally:
            gc.enable()
        return x.grad

    assert_same_as_eager(scenario)
