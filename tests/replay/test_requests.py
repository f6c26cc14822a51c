"""What a backward can be asked for: roots, inputs and edges of all kinds; and a second try after a failure."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import backbind
import pytest
import torch
from torch.autograd.graph import get_gradient_edge

from tests.replay.differential import Expected, Run, assert_same_as_eager
from tests.replay.test_hooks import PLACES, World, add_hook, make_world


def _edge(tensor: torch.Tensor) -> Any:
    return get_gradient_edge(tensor)


REQUESTS: dict[str, Callable[[World], object]] = {
    "an input twice": lambda w: torch.autograd.grad(w.loss, [w.leaf, w.leaf, w.middle, w.middle]),
    "an input edge": lambda w: torch.autograd.grad(w.loss, [_edge(w.middle), _edge(w.leaf)]),
    "a root edge": lambda w: torch.autograd.grad(_edge(w.loss), [w.leaf], torch.ones(())),
    "a root edge backward": lambda w: torch.autograd.backward(_edge(w.branch), torch.ones(3, 3)),
    "edges on both sides": lambda w: torch.autograd.grad(
        _edge(w.branch), [_edge(w.middle)], torch.ones(3, 3)
    ),
    "the root itself": lambda w: torch.autograd.grad(w.loss, [w.loss]),
    "a root and its part": lambda w: torch.autograd.grad(
        [w.loss, w.branch], [w.leaf], [None, torch.ones(3, 3)]
    ),
    "a root twice": lambda w: torch.autograd.backward([w.loss, w.loss]),
    "a root twice with gradients": lambda w: torch.autograd.backward([w.branch] * 2, [torch.ones(3, 3)] * 2),
    "an input of another graph": lambda w: torch.autograd.grad(
        w.loss, [make_world().leaf, w.leaf], allow_unused=True
    ),
    "unused made zero": lambda w: torch.autograd.grad(
        w.loss, [make_world().leaf, w.leaf], materialize_grads=True
    ),
    "no inputs": lambda w: torch.autograd.grad(w.loss, []),
    "empty inputs of backward": lambda w: w.loss.backward(inputs=[]),
    "an input that is no leaf": lambda w: w.loss.backward(inputs=[w.middle]),
    "leaf and middle accumulated": lambda w: w.loss.backward(inputs=[w.middle, w.leaf]),
    "a gradient with a graph": lambda w: torch.autograd.grad(
        w.branch, [w.leaf], torch.ones(3, 3, requires_grad=True) * 2, create_graph=True
    ),
    "a gradient of the wrong shape": lambda w: w.branch.backward(torch.ones(2)),
    "no gradient for a matrix": lambda w: w.branch.backward(),
    "a root without a graph": lambda w: torch.ones(()).backward(),
    "one root without a graph": lambda w: torch.autograd.backward([w.loss, torch.ones(())]),
    "an undefined part": lambda w: torch.autograd.grad(
        w.leaf.sum() + 0 * w.loss.detach(), [w.leaf, w.other], allow_unused=True
    ),
}


@pytest.mark.parametrize("request_", REQUESTS)
def test_requests(request_: str) -> None:
    def scenario(run: Run) -> object:
        world = make_world()
        for place in PLACES:
            add_hook(run, world, "tensor", place, lambda grads: None, place)
            add_hook(run, world, "node pre", place, lambda grads: None, place + " pre")
        world.middle.retain_grad()
        out = [run.attempt(lambda: REQUESTS[request_](world)) for _ in range(2)]
        return out, world.leaf.grad, world.other.grad, world.middle.grad

    assert_same_as_eager(scenario, Expected(captures=None))


def test_an_input_beyond_the_root_is_not_used() -> None:
    """Where the engine has its entry to itself it fails here, in an index of its own."""
    world = make_world()
    with backbind.capture():
        unused = torch.autograd.grad(world.branch.sum(), [world.loss], allow_unused=True)
        assert list(unused) == [None]
        with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
            torch.autograd.grad(world.branch.sum(), [world.loss])


@pytest.mark.parametrize("retain_graph", [False, True])
@pytest.mark.parametrize("kind", ["tensor", "node pre", "node post"])
@pytest.mark.parametrize("place", PLACES)
def test_a_second_try_after_a_failure(place: str, kind: str, retain_graph: bool) -> None:
    def scenario(run: Run) -> object:
        world = make_world()

        def fails(_: Any) -> None:
            raise ValueError("the first time")

        handle = add_hook(run, world, kind, place, fails)
        first = run.attempt(lambda: world.loss.backward(retain_graph=retain_graph))
        grads = world.leaf.grad, world.other.grad
        handle.remove()
        nodes: list[Any] = [world.branch.grad_fn, world.middle.grad_fn]
        saved = [run.attempt(lambda: nodes[0]._saved_result), run.attempt(lambda: nodes[1]._saved_self)]
        return first, grads, saved, run.attempt(world.loss.backward), world.leaf.grad, world.other.grad

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("filters", ["always", "error"])
@pytest.mark.parametrize("then", ["returns", "a hook raises", "a node raises"])
def test_warnings_of_the_backward(then: str, filters: Any) -> None:
    def scenario(run: Run) -> object:
        x = torch.randn(6, requires_grad=True)
        y = x.exp()
        # The gradient of put() warns that it is not deterministic.
        loss = y.put(torch.tensor([1, 4]), torch.zeros(2)).sum()

        def hook(grad: torch.Tensor) -> torch.Tensor | None:
            run.note("hook", grad)
            if then == "a hook raises":
                raise ValueError("from the hook")
            return None

        y.register_hook(hook)
        if then == "a node raises":
            y.detach().add_(1)
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter(filters)
                out = run.attempt(loss.backward)
            assert caught or then != "returns" or filters == "error"
            return out, x.grad, [str(one.message) for one in caught]
        finally:
            torch.use_deterministic_algorithms(False)

    assert_same_as_eager(scenario)


MISSING: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "not implemented": lambda x: torch.igamma(x.exp(), torch.ones(3)),
    "not differentiable": lambda x: torch.nextafter(x, x + 1),
    "twice not implemented": lambda x: torch._foreach_exp([x])[0] * torch.special.i1e(x),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("function", MISSING)
def test_derivatives_that_torch_lacks(function: str, create_graph: bool) -> None:
    def scenario(run: Run) -> object:
        x = torch.rand(3, requires_grad=True)
        loss = MISSING[function](x).sum()
        out = run.attempt(lambda: torch.autograd.grad(loss, x, create_graph=create_graph))
        if not create_graph or not isinstance(out, tuple):
            return out
        return out, run.attempt(lambda: torch.autograd.grad(out[0].sum(), x))

    assert_same_as_eager(scenario, Expected(captures=None))


def test_saved_tensors_that_may_be_changed() -> None:
    def scenario(run: Run) -> object:
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            x = torch.randn(3, requires_grad=True)
            hidden = x * 1
            loss = (hidden.sin() * hidden).sum()
            hidden.zero_()
            return run.attempt(loss.backward), x.grad

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("where", PLACES)
def test_a_graph_that_grows_between_backwards(where: str) -> None:
    def scenario(run: Run) -> object:
        world = make_world()
        out = []
        for step in range(3):
            loss = world.loss + (world.at(where) * step).sum()
            out.append(run.attempt(lambda loss=loss: loss.backward(retain_graph=True)))  # type: ignore[misc]
            out.append(world.leaf.grad)
            world.loss = loss
        return out

    assert_same_as_eager(scenario)
