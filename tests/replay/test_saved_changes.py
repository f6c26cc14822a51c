"""What a program may do to a saved tensor between forward and backward: detach it, change it, give it other memory.

Where the engine refuses, so does a captured backward, in the same words; where the engine goes on, the gradients are
the same.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.replay.differential import Expected, Raised, Run, assert_same_as_eager

CHANGES: dict[str, Callable[[Tensor], object]] = {
    "nothing": lambda saved: None,
    "detach_": lambda saved: saved.detach_(),
    "detach": lambda saved: saved.detach(),
    "requires_grad_(False)": lambda saved: saved.requires_grad_(False),
    "requires_grad_()": lambda saved: saved.requires_grad_(),
    "detach_ and requires_grad_": lambda saved: saved.detach_().requires_grad_(),
    "data": lambda saved: setattr(saved, "data", torch.full_like(saved, 0.25)),
    "data of another dtype": lambda saved: setattr(saved, "data", saved.data.double()),
    "data of another size": lambda saved: setattr(saved, "data", torch.ones(3, 5)),
    "data in place": lambda saved: saved.data.mul_(2),
    "in place": lambda saved: _without_grad(lambda: saved.mul_(2)),
    "in place with a graph": lambda saved: saved.mul_(2),
    "in place on an alias": lambda saved: saved.detach().mul_(2),
    "in place with the version kept": lambda saved: _keeping_version(saved, lambda: saved.detach().mul_(2)),
    "version": lambda saved: torch.autograd.graph.increment_version(saved),
    "set_": lambda saved: _without_grad(lambda: saved.set_(torch.ones(3, 3))),  # type: ignore[call-overload]
    "resize_": lambda saved: _without_grad(lambda: saved.resize_(3, 3)),
    "storage to nothing and back": lambda saved: _empty_and_fill(saved),
    "larger storage": lambda saved: saved.untyped_storage().resize_(200),
    "swapped": lambda saved: torch.utils.swap_tensors(saved, torch.ones(3, 3)),
    "hook": lambda saved: saved.register_hook(lambda grad: grad * 2),
    "retain_grad": lambda saved: saved.retain_grad(),
}


def _without_grad(change: Callable[[], object]) -> None:
    with torch.no_grad():
        change()


def _keeping_version(tensor: Tensor, change: Callable[[], object]) -> None:
    with torch.autograd.grad_mode._unsafe_preserve_version_counter(tensor):
        change()


def _empty_and_fill(tensor: Tensor) -> None:
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    storage.resize_(0)
    storage.resize_(size)
    with torch.no_grad():
        tensor.data.fill_(0.5)


def _leaf(start: Tensor) -> Tensor:
    return start


SUBJECTS: dict[str, Callable[[Tensor], Tensor]] = {
    "leaf": _leaf,
    "result": lambda start: start.clone(),
    "view": lambda start: start.clone().t(),
    "view of a leaf": lambda start: start[:],
    "constant": lambda start: start.detach().clone(),
}
"""How the tensor that is changed comes from the leaf."""

OPERATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sin": lambda changed, other: changed.sin(),
    "product": lambda changed, other: changed * other,
    "quotient": lambda changed, other: other / changed,
    "power": lambda changed, other: changed.pow(2.5),
    "matrices": lambda changed, other: changed @ other,
    "added matrices": lambda changed, other: torch.addmm(other, changed, other),
    "sum over a product": lambda changed, other: (changed * other).sum(0),
    "embedding of lists": lambda changed, other: torch.stack([changed, other]).prod(0),
}
"""They save what is changed as an input."""

RESULTS: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": lambda x: x.exp(),
    "tanh": lambda x: x.tanh(),
    "relu": lambda x: x.relu(),
    "softmax": lambda x: x.softmax(0),
    "sqrt": lambda x: x.sqrt(),
    "in place": lambda x: x.clone().sigmoid_(),
}
"""They save their result, which is changed."""

ANY_PLAN = Expected(captures=None)


def _start() -> Tensor:
    return torch.linspace(0.1, 0.9, 9).reshape(3, 3).requires_grad_()


def _change_and_differentiate(
    run: Run, change: str, changed: Tensor, loss: Tensor, leaves: list[Tensor]
) -> object:
    try:
        CHANGES[change](changed)
    except Exception as error:  # torch refuses some; then the backward is one of an unchanged tensor
        run.note(Raised.of(error))
    outcome = run.attempt(lambda: loss.backward())
    return outcome, [leaf.grad for leaf in leaves]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_saved_input(operation: str, subject: str, change: str) -> None:
    def scenario(run: Run) -> object:
        start, other = _start(), torch.linspace(-1, 1, 9).reshape(3, 3).requires_grad_()
        changed = SUBJECTS[subject](start)
        loss = OPERATIONS[operation](changed, other).sum()
        return _change_and_differentiate(run, change, changed, loss, [start, other])

    if not (operation in ("sin", "power") and subject == "constant"):
        assert_same_as_eager(scenario, ANY_PLAN)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("result", RESULTS)
def test_a_saved_result(result: str, change: str) -> None:
    def scenario(run: Run) -> object:
        start = _start()
        changed = RESULTS[result](start)
        return _change_and_differentiate(run, change, changed, changed.sum(), [start])

    assert_same_as_eager(scenario, ANY_PLAN)


def test_a_saved_input_that_was_detached_in_place_is_refused() -> None:
    def scenario(run: Run) -> object:
        changed = _start().clone()
        loss = changed.sin().sum()
        changed.detach_()
        return run.attempt(loss.backward)

    assert_same_as_eager(scenario, ANY_PLAN)
    assert isinstance(scenario(Run("eager", torch.enable_grad)), Raised)
