"""Kernels that a program brings for autograd's dispatch keys of torch's own operators, which steps leave out.

The engine calls them in each backward, so a captured one does too: steps that call such an operator take the slow path.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor

from tests.replay.differential import Expected, Run, assert_same_as_eager

_private: Any = torch._C
_KEYSETS = {
    "Autograd": _private._after_autograd_keyset,
    "AutogradCPU": _private._after_autograd_keyset,
    "ADInplaceOrView": _private._after_ADInplaceOrView_keyset,
}
"""For each key, those that a kernel there calls next."""


class Foreign:
    """Kernels that count their calls and go on to torch's."""

    def __init__(self) -> None:
        self.calls = 0
        self._library = torch.library.Library("aten", "IMPL")

    def bring(self, name: str, key: str) -> None:
        """Register a kernel for ``add_.Tensor`` and the like."""
        base, _, overload = name.partition(".")
        operator = getattr(getattr(torch.ops.aten, base), overload or "default")

        def kernel(keys: Any, *arguments: Any, **more: Any) -> Any:
            self.calls += 1
            return operator.redispatch(keys & _KEYSETS[key], *arguments, **more)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the kernel that is overridden
            self._library.impl(name, kernel, key, with_keyset=True)

    def take_back(self) -> None:
        """Take all kernels back."""
        self._library._destroy()
        self._library = torch.library.Library("aten", "IMPL")


@pytest.fixture
def foreign() -> Iterator[Foreign]:
    made = Foreign()
    yield made
    made.take_back()


def _leaf(*sizes: int) -> Tensor:
    return torch.linspace(0.2, 0.8, torch.Size(sizes).numel()).reshape(sizes).clone().requires_grad_()


def _tanh() -> tuple[Tensor, list[Tensor]]:
    x = _leaf(3)
    return x.tanh().sum(), [x]


def _product() -> tuple[Tensor, list[Tensor]]:
    x, y = _leaf(3), _leaf(3)
    return (x * y).sum(), [x, y]


def _factor() -> tuple[Tensor, list[Tensor]]:
    x = _leaf(3)
    return x.sub(x.exp(), alpha=3).sum(), [x]


def _matrices() -> tuple[Tensor, list[Tensor]]:
    x, y = _leaf(3, 2), _leaf(2, 3)
    return (x @ y).square().sum(), [x, y]


def _power() -> tuple[Tensor, list[Tensor]]:
    x = _leaf(3)
    return x.pow(3).sum(), [x]


def _accumulated() -> tuple[Tensor, list[Tensor]]:
    x = _leaf(3)
    x.grad = torch.ones(3)
    return x.exp().sum(), [x]


def _summed() -> tuple[Tensor, list[Tensor]]:
    x = _leaf(3)
    y = x.exp()
    # The gradient arrives twice as one tensor, so that the engine may not write the sum into it.
    return (y + y).square().sum(), [x]


def _broadcast() -> tuple[Tensor, list[Tensor]]:
    x, y = _leaf(2, 3), _leaf(3)
    return (x + y).square().sum(), [x, y]


def _reshaped() -> tuple[Tensor, list[Tensor]]:
    x = _leaf(2, 3)
    return x.reshape(6).exp().view(3, 2).permute(1, 0).sum(), [x]


def _squeezed() -> tuple[Tensor, list[Tensor]]:
    x = _leaf(2, 1, 3)
    return x.squeeze(1).exp().sum(0).square().sum(), [x]


PROGRAMS: dict[str, tuple[Callable[[], tuple[Tensor, list[Tensor]]], str]] = {
    "tanh_backward": (_tanh, "TanhBackward0"),
    "mul.Tensor": (_product, "MulBackward0"),
    "mul.Scalar": (_factor, "SubBackward0"),
    "neg": (_factor, "SubBackward0"),
    "mm": (_matrices, "MmBackward0"),
    "t": (_matrices, "MmBackward0"),
    "pow.Tensor_Scalar": (_power, "PowBackward0"),
    "expand": (_product, "SumBackward0"),
    "add_.Tensor": (_accumulated, "AccumulateGrad"),
    "add.Tensor": (_summed, "AccumulateGrad"),
    "sum.dim_IntList": (_broadcast, "AddBackward0"),
    "view": (_broadcast, "AddBackward0"),
    "permute": (_reshaped, "PermuteBackward0"),
    "unsqueeze": (_squeezed, "SqueezeBackward1"),
}
"""By the operator that is brought: a program whose backward calls it, and a node whose step does."""


@pytest.mark.parametrize("key", _KEYSETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_is_called_as_often_as_the_engine_calls_it(name: str, key: str, foreign: Foreign) -> None:
    counts: list[int] = []

    def scenario(run: Run) -> object:
        # Below the kernel nobody builds a graph, so it comes after the forward.
        loss, leaves = PROGRAMS[name][0]()
        foreign.bring(name, key)
        before = foreign.calls
        outcome = run.attempt(loss.backward)
        counts.append(foreign.calls - before)
        foreign.take_back()
        return outcome, [leaf.grad for leaf in leaves]

    assert_same_as_eager(scenario, Expected())
    assert len(set(counts)) == 1
    assert counts[0] > 0


REASON = "the program's own kernel for a dispatch key of autograd, of the operator"


def _slow(program: Callable[[], tuple[Tensor, list[Tensor]]]) -> dict[str, Mapping[str, int]]:
    """Why steps of a captured backward took the slow path."""
    loss, _ = program()
    with backbind.capture() as session:
        loss.backward()
    return dict(session.stats.slow_path_reasons)


@pytest.mark.parametrize("key", _KEYSETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_come_and_go(name: str, key: str, foreign: Foreign) -> None:
    program, node = PROGRAMS[name]
    usual = _slow(program)
    assert _slow(program) == usual
    losses = [program()[0] for _ in range(2)]
    foreign.bring(name, key)
    losses[0].backward()
    expected = foreign.calls
    with backbind.capture() as session:
        losses[1].backward()
    assert foreign.calls == 2 * expected
    reason = f"{REASON} aten::{name.partition('.')[0]}"
    assert node in session.stats.slow_path_reasons[reason]
    assert (session.stats.captures, session.stats.replays) == (0, 1)
    foreign.take_back()
    assert _slow(program) == usual
    assert foreign.calls == 2 * expected


def test_other_steps_go_on(foreign: Foreign) -> None:
    def program() -> tuple[Tensor, list[Tensor]]:
        x = _leaf(3)
        return x.exp().tanh().sin().sum(), [x]

    assert _slow(program) == {}
    foreign.bring("sigmoid_backward", "AutogradCPU")
    assert _slow(program) == {}
    foreign.bring("tanh_backward", "AutogradCPU")
    assert _slow(program) == {f"{REASON} aten::tanh_backward": {"TanhBackward0": 1}}


@pytest.mark.slow
@pytest.mark.parametrize("key", ["Autograd", "ADInplaceOrView"])
def test_a_kernel_that_was_there_before_us(key: str) -> None:
    program = f"""
import sys, warnings, torch
warnings.simplefilter("ignore")
calls = 0
library = torch.library.Library("aten", "IMPL")
operator = torch.ops.aten.tanh_backward.default
after = torch._C._after_autograd_keyset if {key!r} != "ADInplaceOrView" else torch._C._after_ADInplaceOrView_keyset
def kernel(keys, grad, result):
    global calls
    calls += 1
    return operator.redispatch(keys & after, grad, result)
library.impl("tanh_backward", kernel, {key!r}, with_keyset=True)
import backbind
def run():
    x = torch.ones(3, requires_grad=True)
    x.tanh().sum().backward()
    return calls
found = [run()]
with backbind.capture():
    found += [run(), run()]
    library._destroy()
    found += [run(), run()]
print(found)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[1, 2, 3, 3, 3]\n"


@pytest.mark.parametrize("name", ["tanh_backward", "t"])
def test_kernels_of_the_processor_are_called_as_ever(name: str, foreign: Foreign) -> None:
    calls: list[str] = []
    library = torch.library.Library("aten", "IMPL")

    def tanh_backward(grad: Tensor, result: Tensor) -> Tensor:
        calls.append(name)
        return grad - result

    def transposed(matrix: Tensor) -> Tensor:
        calls.append(name)
        result: Tensor = torch.ops.aten.as_strided.default(matrix, matrix.shape[::-1], matrix.stride()[::-1])
        return result

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl(name, tanh_backward if name == "tanh_backward" else transposed, "CPU")
    try:

        def scenario(run: Run) -> object:
            calls.clear()
            loss, leaves = PROGRAMS[name][0]()
            run.attempt(loss.backward)
            run.note(*calls)
            assert calls
            return [leaf.grad for leaf in leaves]

        assert_same_as_eager(scenario, Expected())
    finally:
        library._destroy()


def test_what_falls_through_is_called_as_ever() -> None:
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl("tanh_backward", torch.library.fallthrough_kernel, "AutogradCPU")
    try:

        def scenario(run: Run) -> object:
            loss, leaves = _tanh()
            run.attempt(loss.backward)
            return [leaf.grad for leaf in leaves]

        assert_same_as_eager(scenario, Expected())
    finally:
        library._destroy()
