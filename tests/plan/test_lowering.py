"""The lowering says what the engine does at each step, in the engine's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import backbind
import pytest
import torch
from backbind import _C
from backbind.graph import backends
from backbind.graph.captured_graph import build_captured_graph
from backbind.graph.lowering import (
    Accumulate,
    AddToBuffer,
    Call,
    CallHooks,
    ExpectedGrad,
    InputRef,
    Lifted,
    Lowering,
    Release,
    ReturnGrad,
    Root,
    ValidateGrads,
)
from torch import fx

from tests.plan.random_programs import run_program


class _Noted(torch.autograd.Function):
    """A function that tells when its backward is called."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, note: Callable[[str], None]) -> torch.Tensor:
        ctx.note = note
        return value * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.note("call")
        return grad * 2, None


def _names(operations: Sequence[tuple[str, object]]) -> list[str]:
    return [name for name, _ in operations]


def test_hooks_and_call_come_in_the_engines_order() -> None:
    seen: list[str] = []
    leaf = torch.ones(2, requires_grad=True)
    value: torch.Tensor = _Noted.apply(leaf, seen.append)  # type: ignore[no-untyped-call]
    value.retain_grad()
    value.register_hook(lambda grad: seen.append("tensor_pre_hooks"))
    node = value.grad_fn
    assert node is not None
    node.register_prehook(lambda grads: seen.append("pre_hooks") if value.grad is not None else None)
    node.register_hook(lambda results, grads: seen.append("post_hooks"))
    leaf.register_hook(lambda grad: seen.append("add_to_buffer"))
    _, steps = _C.lower([value], [leaf], False)
    operations = steps[0][6]
    torch.autograd.backward(value, torch.ones(2))
    names = _names(operations)
    done = [name for name in names if name in seen]
    assert seen == done == ["tensor_pre_hooks", "pre_hooks", "call", "post_hooks", "add_to_buffer"]
    # The gradient is retained between the two hooks that were told apart by it.
    assert names.index("tensor_pre_hooks") < names.index("retain_grad") < names.index("pre_hooks")


def test_the_operations_of_a_step() -> None:
    leaf = torch.ones(2, requires_grad=True)
    lowering = Lowering.of([(leaf * leaf.sum()).sum()], [leaf])
    mul = lowering.steps[1]
    assert mul.node == "MulBackward0"
    assert mul.operations == (
        CallHooks("tensor_pre_hooks"),
        CallHooks("retain_grad"),
        CallHooks("pre_hooks"),
        Call(),
        ValidateGrads((ExpectedGrad((2,), torch.float32, None), ExpectedGrad((), torch.float32, None))),
        CallHooks("post_hooks"),
        Release(),
        AddToBuffer(0, InputRef(3, 0)),
        AddToBuffer(1, InputRef(2, 0)),
    )


def test_what_nobody_needs_is_computed_and_sent_nowhere() -> None:
    leaf, other = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    lowering = Lowering.of([leaf * other], [other])
    (mul, returned) = lowering.steps
    assert [one for one in mul.operations if isinstance(one, AddToBuffer)] == [AddToBuffer(1, InputRef(1, 0))]
    assert mul.expected == (None, ExpectedGrad((2,), torch.float32, None))
    assert returned.operations == (
        CallHooks("tensor_pre_hooks"),
        CallHooks("retain_grad"),
        ReturnGrad(0, 0),
    )


def test_a_gradient_that_goes_on_is_returned_before_its_hooks() -> None:
    leaf = torch.ones(2, requires_grad=True)
    middle = leaf * 2
    step = Lowering.of([middle], [middle, leaf]).steps[0]
    assert step.operations[:2] == (ReturnGrad(0, 0), CallHooks("tensor_pre_hooks"))


def test_a_gradient_asked_for_twice_is_returned_twice() -> None:
    leaf = torch.ones(2, requires_grad=True)
    step = Lowering.of([leaf * 2], [leaf, leaf]).steps[1]
    assert [one for one in step.operations if isinstance(one, ReturnGrad)] == [
        ReturnGrad(0, 0),
        ReturnGrad(0, 1),
    ]


def test_a_captured_backward_accumulates_and_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its values are known when it runs: what stands for the leaf is a place in the list of its inputs."""
    lowerings: list[Lowering] = []

    def build(lowering: Lowering, *args: Any, **kwargs: Any) -> fx.Graph:
        lowerings.append(lowering)
        return build_captured_graph(lowering, *args, **kwargs)

    monkeypatch.setattr(backends, "build_captured_graph", build)
    leaf = torch.ones(2, requires_grad=True)
    with backbind.capture(backend="graph"):
        leaf.exp().sum().backward()
    (lowering,) = lowerings
    accumulating = lowering.steps[-1]
    assert (accumulating.node, accumulating.kind) == ("torch::autograd::AccumulateGrad", "accumulate_grad")
    assert accumulating.operations == (
        CallHooks("tensor_pre_hooks"),
        CallHooks("retain_grad"),
        CallHooks("pre_hooks"),
        Accumulate(Lifted("inputs", 2)),
        ValidateGrads(()),
        CallHooks("post_hooks"),
        Release(),
    )
    assert accumulating.leaf == Lifted("inputs", 2)
    assert [step.live for step in lowering.steps] == [None, None, None]


def _noted(value: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = _Noted.apply(value, print)  # type: ignore[no-untyped-call]
    return result


def _set(value: torch.Tensor) -> torch.Tensor:
    copy = value.clone()
    copy[0] = 1
    return copy


def _copied(value: torch.Tensor) -> torch.Tensor:
    return torch.empty(2, dtype=torch.float64).copy_(value)


def _hooked(value: torch.Tensor) -> torch.Tensor:
    result = value.exp()
    result.register_hook(lambda gradient: None)
    return result


def _unpacking(value: torch.Tensor) -> torch.Tensor:
    with torch.autograd.graph.save_on_cpu():
        return value.exp()


@pytest.mark.parametrize(
    ("program", "node", "kind", "hooks", "unpacks", "is_foreign"),
    [
        (torch.exp, "ExpBackward0", None, (), False, False),
        (_noted, "_NotedBackward", "python", (), False, True),
        (_set, "torch::autograd::CopySlices", "copy_slices", (), False, True),
        (_copied, "torch::autograd::CopyBackwards", "cpp", (), False, True),
        (_hooked, "ExpBackward0", None, ("tensor hook",), False, True),
        (_unpacking, "ExpBackward0", None, (), True, True),
    ],
)
def test_what_runs_code_that_has_no_operator(
    program: Callable[[torch.Tensor], torch.Tensor],
    node: str,
    kind: str | None,
    hooks: tuple[str, ...],
    unpacks: bool,
    is_foreign: bool,
) -> None:
    leaf = torch.ones(2, requires_grad=True)
    step = Lowering.of([program(leaf)], [leaf]).steps[0]
    assert (step.node, step.kind, step.hooks) == (node, kind, hooks)
    assert (step.unpacks, step.is_foreign) == (unpacks, is_foreign)
    assert repr(step.live) == f"<live node {node}>"


def test_a_leaf_may_be_a_root() -> None:
    leaf = torch.ones(2, requires_grad=True)
    lowering = Lowering.of([leaf], [leaf])
    assert lowering.roots == (Root(InputRef(0, 0), ExpectedGrad((2,), torch.float32, None)),)
    (step,) = lowering.steps
    assert (step.node, step.operator, step.kind, step.num_inputs) == (
        "torch::autograd::AccumulateGrad",
        None,
        None,
        1,
    )
    assert step.operations[-1] == ReturnGrad(0, 0)


@pytest.mark.parametrize("seed", range(40))
def test_gradients_are_added_to_buffers_of_later_steps(seed: int) -> None:
    """Whatever is read has arrived before: a backend may go through the steps once."""
    loss = run_program(seed).loss
    lowering = Lowering.of([loss], backbind.leaves(loss))
    arrived = {root.input for root in lowering.roots}
    for position, step in enumerate(lowering.steps):
        assert any(InputRef(position, number) in arrived for number in range(step.num_inputs))
        for operation in step.operations:
            if isinstance(operation, AddToBuffer):
                assert operation.input.step > position
                arrived.add(operation.input)
