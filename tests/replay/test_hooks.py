"""Every kind of hook at every place, whatever it returns: called in the engine's order with the engine's arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.autograd.graph import get_gradient_edge

from tests.replay.differential import Run, assert_same_as_eager

Outcome = Callable[[Any], Any]


def _raise(_: Any) -> Any:
    raise KeyError("from the hook")


def _each(change: Callable[[torch.Tensor], Any]) -> Outcome:
    """The same change for a hook that gets one gradient and for one that gets a tuple."""

    def outcome(grads: Any) -> Any:
        if isinstance(grads, tuple):
            return tuple(None if grad is None else change(grad) for grad in grads)
        return change(grads)

    return outcome


OUTCOMES: dict[str, Outcome] = {
    "nothing": lambda grads: None,
    "the same": lambda grads: grads,
    "replaced": _each(lambda grad: grad * 2),
    "a view": _each(lambda grad: grad.view_as(grad)),
    "transposed memory": _each(lambda grad: grad.t().contiguous().t() if grad.dim() == 2 else grad + 0),
    "none inside": _each(lambda grad: None),
    "raises": _raise,
    "a number": lambda grads: 3,
    "a list": lambda grads: list(grads) if isinstance(grads, tuple) else [grads],
    "wrong shape": _each(lambda grad: torch.ones(5)),
    "broadcastable shape": _each(lambda grad: torch.ones(1)),
    "wrong dtype": _each(lambda grad: grad.double()),
    "integers": _each(lambda grad: grad.long()),
    "complex": _each(lambda grad: grad.to(torch.complex64)),
    "meta": _each(lambda grad: grad.to("meta")),
    "sparse": _each(lambda grad: grad.to_sparse()),
    "too many": lambda grads: (*grads, torch.ones(2)) if isinstance(grads, tuple) else (grads, grads),
    "too few": lambda grads: () if isinstance(grads, tuple) else grads[:1],
    "changed in place": _each(lambda grad: grad.mul_(2)),
    "requires grad": _each(lambda grad: grad.clone().requires_grad_()),
}


@dataclass
class World:
    """A small graph in which each place for a hook is to be found."""

    leaf: torch.Tensor
    other: torch.Tensor
    middle: torch.Tensor
    branch: torch.Tensor
    loss: torch.Tensor

    def at(self, place: str) -> torch.Tensor:
        return {"leaf": self.leaf, "intermediate": self.middle, "root": self.loss, "captured": self.branch}[
            place
        ]


def make_world() -> World:
    leaf, other = torch.randn(3, 2, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    middle = leaf @ other
    branch = middle.tanh()
    loss = (branch * middle.sin()).sum() + (leaf * leaf).sum()
    return World(leaf, other, middle, branch, loss)


def run_world(run: Run, world: World, place: str) -> object:
    if place == "captured":
        return run.attempt(lambda: torch.autograd.grad(world.loss, [world.branch, world.leaf]))
    return run.attempt(world.loss.backward), world.leaf.grad, world.other.grad


KINDS = ("tensor", "node pre", "node post", "post accumulate")
PLACES = ("leaf", "intermediate", "root", "captured")


def add_hook(run: Run, world: World, kind: str, place: str, outcome: Outcome, name: str = "hook") -> Any:
    tensor = world.at(place)

    def hook(*grads: Any) -> Any:
        parts: Any = [grad.grad if kind == "post accumulate" else grad for grad in grads]
        run.note(
            name,
            parts,
            torch.is_grad_enabled(),
            torch._C._current_graph_task_id() != -1,
            [world.leaf.grad is None, world.other.grad is None],
        )
        return outcome(grads[0])

    if kind == "tensor":
        return tensor.register_hook(hook)
    if kind == "post accumulate":
        return tensor.register_post_accumulate_grad_hook(hook)
    node = get_gradient_edge(tensor).node
    return node.register_prehook(hook) if kind == "node pre" else node.register_hook(hook)


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_outcome_of_a_hook(kind: str, place: str, outcome: str) -> None:
    if kind == "post accumulate" and place != "leaf":
        place = "leaf"

    def scenario(run: Run) -> object:
        world = make_world()
        add_hook(run, world, kind, place, OUTCOMES[outcome])
        if kind != "post accumulate":
            add_hook(run, world, kind, place, OUTCOMES["nothing"], "second")
        return run_world(run, world, place)

    assert_same_as_eager(scenario)


def add_all(run: Run, world: World, *, with_leaves: bool) -> None:
    for place in PLACES:
        for kind in ("node post", "node pre", "tensor", "node pre", "tensor"):
            add_hook(run, world, kind, place, OUTCOMES["nothing"], f"{place} {kind}")
        if world.at(place).grad_fn is not None:
            world.at(place).retain_grad()
    for tensor in (world.leaf, world.other):
        tensor.register_post_accumulate_grad_hook(lambda p: run.note("accumulated", p.grad))
    modes: list[Any] = ["all", "any"]
    for mode in modes:
        torch.autograd.graph.register_multi_grad_hook(
            [world.leaf, world.middle, world.branch] if with_leaves else [world.middle, world.branch],
            functools.partial(run.note, "multi", mode),
            mode=mode,
        )
    if with_leaves:
        torch.autograd.graph.register_multi_grad_hook([world.other], lambda grads: run.note("other", grads))


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "how",
    ["backward", "inputs", "inputs other", "grad leaf", "grad middle", "grad branch and leaf", "grad root"],
)
def test_order_of_all_kinds_together(how: str, create_graph: bool) -> None:
    def scenario(run: Run) -> object:
        world = make_world()
        # The engine refuses such hooks on leaves while autograd.grad() runs.
        add_all(run, world, with_leaves=not how.startswith("grad"))
        wanted = {
            "inputs": [world.leaf],
            "inputs other": [world.other, world.middle],
            "grad leaf": [world.leaf],
            "grad middle": [world.middle],
            "grad branch and leaf": [world.branch, world.leaf],
            "grad root": [world.loss, world.leaf],
        }.get(how)
        with run.backward():
            if how.startswith("grad"):
                assert wanted is not None
                grads: Any = torch.autograd.grad(world.loss, wanted, create_graph=create_graph)
            else:
                grads = world.loss.backward(inputs=wanted, create_graph=create_graph)
        return grads, world.leaf.grad, world.other.grad, [world.at(place).grad for place in PLACES[1:]]

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_hooks_added_and_removed_between_steps(kind: str, place: str) -> None:
    if kind == "post accumulate" and place != "leaf":
        place = "leaf"

    def scenario(run: Run) -> object:
        world = make_world()
        handles: list[Any] = []
        out: list[object] = []
        with run.backward():
            for step in range(4):
                if step == 1:
                    handles += [
                        add_hook(run, world, kind, place, OUTCOMES["nothing"], f"{i}") for i in (0, 1)
                    ]
                elif step == 2:
                    handles.pop(0).remove()
                elif step == 3:
                    handles.pop().remove()
                out.append(torch.autograd.grad(world.loss, [world.branch, world.leaf], retain_graph=True))
                world.loss.backward(retain_graph=True)
                out.append((world.leaf.grad,))
        return out

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("change", ["add", "remove later", "remove earlier", "remove itself"])
@pytest.mark.parametrize("target", ["same", "earlier", "later", "leaf"])
@pytest.mark.parametrize("kind", KINDS[:3])
def test_hooks_added_and_removed_during_the_backward(kind: str, target: str, change: str) -> None:
    places = {"same": "intermediate", "earlier": "root", "later": "captured", "leaf": "leaf"}
    # The hook that changes others hangs on the middle, or on the branch, which is reached before it.
    place = "captured" if target == "later" else "intermediate"

    def scenario(run: Run) -> object:
        world = make_world()
        handles: dict[str, Any] = {}

        def meddle(_: Any) -> None:
            if change == "add":
                add_hook(run, world, kind, places[target], OUTCOMES["nothing"], "added")
            else:
                handles[{"remove itself": "meddler"}.get(change, change)].remove()

        handles["remove earlier"] = add_hook(run, world, kind, places[target], OUTCOMES["nothing"], "earlier")
        handles["meddler"] = add_hook(run, world, kind, place, meddle, "meddler")
        handles["remove later"] = add_hook(run, world, kind, places[target], OUTCOMES["nothing"], "later")
        results = [run.attempt(lambda: world.loss.backward(retain_graph=True)), world.leaf.grad]
        if change == "add":  # otherwise there is nothing left to remove
            results += [run.attempt(lambda: world.loss.backward(retain_graph=True)), world.leaf.grad]
        return results

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("mode", ["all", "any"])
@pytest.mark.parametrize("with_root", [False, True])
def test_a_hook_on_several_gradients(with_root: bool, mode: Any) -> None:
    def scenario(run: Run) -> object:
        world = make_world()
        tensors = [world.leaf, world.middle] + [world.loss] * with_root
        torch.autograd.graph.register_multi_grad_hook(tensors, lambda grads: run.note(grads), mode=mode)
        return [run.attempt(lambda: world.loss.backward(retain_graph=True)) for _ in range(2)]

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("outcome", ["nothing", "replaced", "raises", "wrong shape", "none inside"])
@pytest.mark.parametrize("kind", ["full", "full pre", "both"])
def test_module_backward_hooks(kind: str, outcome: str) -> None:
    def scenario(run: Run) -> object:
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))

        def after(module: torch.nn.Module, grads_in: Any, grads_out: Any) -> Any:
            run.note(type(module).__name__, grads_in, grads_out)
            return OUTCOMES[outcome](grads_in)

        def before(module: torch.nn.Module, grads_out: Any) -> Any:
            run.note("pre", type(module).__name__, grads_out)
            return OUTCOMES[outcome](grads_out)

        for module in (model, *model):
            if kind != "full pre":
                module.register_full_backward_hook(after)
            if kind != "full":
                module.register_full_backward_pre_hook(before)
        x = torch.randn(5, 3, requires_grad=True)
        out: list[object] = []
        for _ in range(2):
            out.append((run.attempt(lambda: model(x).sum().backward()), x.grad))
            out.append([p.grad for p in model.parameters()])
        return out

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("allow_unused", [False, True])
@pytest.mark.parametrize("materialize", [False, True])
def test_a_captured_gradient_that_also_passes_on(allow_unused: bool, materialize: bool) -> None:
    def scenario(run: Run) -> object:
        world = make_world()
        unused = torch.randn(2, requires_grad=True)
        for place in PLACES:
            add_hook(run, world, "tensor", place, OUTCOMES["replaced"], place)
            add_hook(run, world, "node pre", place, OUTCOMES["replaced"], place + " pre")
        wanted = [world.middle, world.branch, world.leaf, world.middle] + [unused] * allow_unused
        keywords: dict[str, Any] = {"materialize_grads": True} if materialize else {}
        if not materialize:
            keywords["allow_unused"] = allow_unused
        grads = run.attempt(lambda: torch.autograd.grad(world.loss, wanted, retain_graph=True, **keywords))
        other = run.attempt(lambda: torch.autograd.grad(world.loss, [world.middle, unused], **keywords))
        return grads, other

    assert_same_as_eager(scenario)
