"""Each operation, hook and way of saving on its own: what random programs combine, and may miss by chance."""

from __future__ import annotations

from contextlib import nullcontext

import backbind
import pytest
import torch

from tests.replay.programs.changes import CHANGES
from tests.replay.programs.hooks import DOES, FAILS, KINDS
from tests.replay.programs.machine import run_program
from tests.replay.programs.operations import ALL, RARE
from tests.replay.programs.program import (
    Ask,
    Branch,
    Change,
    Checkpoint,
    Do,
    Hook,
    Program,
    Saving,
    Statement,
    Step,
)
from tests.replay.programs.random_programs import SAVINGS
from tests.replay.programs.test_random_programs import check

ASKS = {
    "backward": Ask(),
    "two roots with gradients": Ask((-1, -2), summed=False),
    "one root twice": Ask((-1, -1), summed=False),
    "one root again behind another": Ask((-1, -2, -1), summed=False),
    "inputs": Ask(inputs=(0, 5)),
    "grad": Ask(grad=True),
    "grad of some": Ask(grad=True, inputs=(0, 5, 4)),
    "second order": Ask(grad=True, create_graph=True),
    "second order into leaves": Ask(create_graph=True),
    "retained": Ask(retain_graph=True, again=True),
    "freed": Ask(again=True),
}
"""Ways to ask for gradients."""

_WRITES_TO_OPERAND = ("in place on a value", "add in place to a value", "in place on a view of a value")


def program_around(*middle: Statement, ask: Ask = ASKS["backward"]) -> Program:
    """A program that uses all leaves before ``middle``, and what comes out of it twice."""
    before = (Do("linear", (0, 0)), Do("times transposed", (-1, -1)), Do("times scalar", (-1, -1)))
    after = (Do("tanh", (-1, -1)), Do("mul", (-1, -2)))
    return Program((*before, *middle, *after), (Step(ask), Step(ask, rows=3, clears=None), Step(ask)))


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
@pytest.mark.parametrize("operation", ALL)
def test_operation(operation: str, ask: Ask) -> None:
    check(program_around(Do(operation, (-1, -2)), ask=ask))


@pytest.mark.parametrize("operation", ALL)
def test_operation_runs(operation: str) -> None:
    """An operation whose forward or backward raised would show nothing."""
    events = run_program(program_around(Do(operation, (-1, -2)))).events
    raised = [event.what for event in events if " raised " in event.what]
    if operation in RARE:
        assert raised == ["the backward raised ValueError: Fails does"] * 3
    else:
        assert raised == []


@pytest.mark.parametrize("ask", ["backward", "grad of some", "second order", "retained", "one root twice"])
@pytest.mark.parametrize("place", [0, -1], ids=["leaf", "value"])
@pytest.mark.parametrize("does", [*DOES, *FAILS])
@pytest.mark.parametrize("kind", KINDS)
def test_hook(kind: str, does: str, place: int, ask: str) -> None:
    check(program_around(Hook(kind, place, "nothing"), Hook(kind, place, does), ask=ASKS[ask]))


@pytest.mark.parametrize("kind", KINDS)
def test_hook_that_comes_and_goes(kind: str) -> None:
    body = (Hook(kind, -1, "double"),)
    program = program_around(Branch(body))
    steps = tuple(Step(takes_branches=flag) for flag in (True, False, True, False, False))
    check(Program(program.statements, steps))


@pytest.mark.parametrize("ask", ["backward", "grad", "second order", "retained", "freed"])
@pytest.mark.parametrize("how", SAVINGS)
def test_saving(how: str, ask: str) -> None:
    body = (Do("attention", (-1, -2)), Do("function of two", (-1, -2)), Do("complex", (-1, -2)))
    check(program_around(Saving(how, body), ask=ASKS[ask]))


@pytest.mark.parametrize("ask", ["backward", "inputs", "grad", "second order", "retained", "freed"])
@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint(reentrant: bool, ask: str) -> None:
    body = (Do("attention", (0, 1)), Do("dropout", (-1, -1)), Do("function of two", (-1, -2)))
    check(program_around(Checkpoint(reentrant, body, (-1, -2)), ask=ASKS[ask]))


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("does", CHANGES)
def test_value_that_was_changed(does: str, place: int) -> None:
    program = program_around(Do("mul", (-1, -2)))
    check(Program(program.statements, (Step(), Step(changes=(Change(does, place),)), Step())))


@pytest.mark.parametrize("does", CHANGES)
def test_changes_happen(does: str) -> None:
    """One that raised would show nothing."""
    program = program_around(Do("mul", (-1, -2)))
    events = run_program(Program(program.statements, (Step(changes=(Change(does, 0),)),))).events
    assert [event.what for event in events if event.what.startswith(f"{does} raised")] == []


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_special_values(ask: Ask) -> None:
    program = program_around(Do("infinities", (-1, -2)), Do("complex infinities", (-1, -2)))
    check(Program(program.statements, (Step(ask, special=True), Step(ask), Step(ask, rows=3, special=True))))


def test_gradients_are_summed_in_place_where_eager_does() -> None:
    """The first gradient that `leaf` gets is the one that came into the node; nothing else holds it any more."""
    leaf = torch.ones(2, requires_grad=True)
    with backbind.capture():
        ((leaf - leaf) * 1).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad._version == 1


def test_multi_grad_hook_on_a_lone_root() -> None:
    """Eager does not count a root that is alone among the nodes that it is going to run."""

    def calls() -> int:
        count = 0

        def called(_: object) -> None:
            nonlocal count
            count += 1

        leaf, unused = (torch.ones(2, requires_grad=True) for _ in range(2))
        root = leaf * 2
        torch.autograd.graph.register_multi_grad_hook([root, unused], called)
        root.backward(torch.ones(2))
        return count

    assert calls() == 0
    with backbind.capture():
        assert calls() == 0
    assert calls() == 0


def test_unused_inputs_outside_of_capture() -> None:
    """The engine's entry stays taken after the first capture, and other backwards go through it."""
    with backbind.capture():
        pass
    leaf, unused = (torch.ones(2, requires_grad=True) for _ in range(2))
    (gradient,) = torch.autograd.grad((leaf * 2).sum(), [unused], allow_unused=True)
    assert gradient is None


@pytest.mark.parametrize("captured", [True, False])
def test_hooks_of_a_lone_root_run_where_nothing_else_does(captured: bool) -> None:
    """Eager looks at its only root before it knows that no input lies behind it."""
    with backbind.capture():
        pass
    leaf, unused = (torch.ones(2, requires_grad=True) for _ in range(2))
    root = leaf * 2
    calls: list[torch.Tensor] = []
    root.register_hook(calls.append)
    root.retain_grad()
    with backbind.capture() if captured else nullcontext():
        torch.autograd.backward(root, torch.ones(2), inputs=[unused])
    assert len(calls) == 1
    assert root.grad is not None
