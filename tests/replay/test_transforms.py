"""Function transforms and batched gradients inside captured code, and around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import func

from tests.replay.differential import Expected, Run, apply, assert_same_as_eager
from tests.replay.test_functions import SetUp
from tests.replay.test_inside_hooks import backward_with


def function(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ x.mT).sin() * x.sum()


def with_function(x: torch.Tensor) -> Any:
    return apply(SetUp, x, x.cos(), 2.0).sum()


TRANSFORMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "grad": func.grad(lambda x: function(x).sum()),
    "grad of grad": func.grad(lambda x: func.grad(lambda y: function(y).sum())(x).pow(2).sum()),
    "grad and value": func.grad_and_value(lambda x: function(x).sum()),
    "vjp": lambda x: func.vjp(function, x)[1](torch.ones(3, 3)),
    "vmap of grad": lambda x: func.vmap(func.grad(lambda row: (row.sin() * row).sum()))(x),
    "grad of vmap": func.grad(lambda x: func.vmap(lambda row: row.cos().sum())(x).sum()),
    "jacrev": func.jacrev(lambda x: function(x).sum(0)),
    "jacfwd": func.jacfwd(lambda x: function(x).sum(0)),
    "hessian": func.hessian(lambda x: function(x).sum()),
    "jvp": lambda x: func.jvp(function, (x,), (torch.ones_like(x),)),
    "function": func.grad(with_function),
    "vmap of grad of function": func.vmap(func.grad(with_function)),
    "functional jacobian": lambda x: torch.autograd.functional.jacobian(function, x),
    "vectorized jacobian": lambda x: torch.autograd.functional.jacobian(function, x, vectorize=True),
    "functional hessian": lambda x: torch.autograd.functional.hessian(lambda y: function(y).sum(), x),
}


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_inside(transform: str, graph: bool) -> None:
    def scenario(run: Run) -> object:
        x = torch.randn(3, 3, requires_grad=graph)
        out = [run.attempt(lambda: TRANSFORMS[transform](x)) for _ in range(2)]
        if graph:

            def backward() -> None:
                made = TRANSFORMS[transform](x)
                parts = torch.utils._pytree.tree_leaves(made)
                sum(part.sin().sum() for part in parts if part.requires_grad).backward()

            out.append(run.attempt(backward))
        return out, x.grad

    # torch.func takes the engine's entry away for its own backwards, so theirs may or may not be captured.
    assert_same_as_eager(scenario, Expected(captures=None))


@pytest.mark.parametrize("place", ["tensor hook", "leaf hook", "after accumulation", "function", "unpack"])
@pytest.mark.parametrize("transform", ["grad", "vmap of grad", "jacrev", "jacfwd", "functional hessian"])
def test_transforms_inside_the_backward(transform: str, place: str) -> None:
    def scenario(run: Run) -> object:
        def inside() -> None:
            with torch.enable_grad():
                run.note(TRANSFORMS[transform](torch.eye(3) + 1))

        return [backward_with(run, place, inside) for _ in range(2)]

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("place", ["leaf", "middle", "both"])
def test_batched_gradients(place: str, create_graph: bool) -> None:
    def scenario(run: Run) -> object:
        x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True)
        middle = x @ w
        out = middle.softmax(-1)
        middle.register_hook(lambda grad: run.note(tuple(grad.shape)))
        wanted = {"leaf": [x], "middle": [middle], "both": [x, middle, w]}[place]
        batch = torch.eye(6).view(6, 3, 2)
        grads: Any = run.attempt(
            lambda: torch.autograd.grad(
                out, wanted, batch, is_grads_batched=True, retain_graph=True, create_graph=create_graph
            )
        )
        again = run.attempt(lambda: torch.autograd.grad(out, wanted, batch, is_grads_batched=True))
        return grads, again

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("what", ["gradcheck", "gradgradcheck", "functional_call", "ensemble"])
def test_tools_built_on_transforms(what: str) -> None:
    def scenario(run: Run) -> object:
        x = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
        model = torch.nn.Linear(3, 2)
        if what == "gradcheck":
            return run.attempt(lambda: torch.autograd.gradcheck(function, x, check_batched_grad=True))
        if what == "gradgradcheck":
            return run.attempt(lambda: torch.autograd.gradgradcheck(function, x))
        parameters = {name: value.detach() for name, value in model.named_parameters()}
        data = torch.randn(5, 3)

        def loss(values: dict[str, torch.Tensor], row: torch.Tensor) -> Any:
            return func.functional_call(model, values, (row,)).pow(2).sum()

        if what == "functional_call":
            return run.attempt(lambda: func.grad(loss)(parameters, data))
        return run.attempt(lambda: func.vmap(func.grad(loss), in_dims=(None, 0))(parameters, data))

    is_func = what in ("functional_call", "ensemble")
    assert_same_as_eager(scenario, Expected(captures=None if is_func else True))


def test_make_fx_traces_a_captured_backward() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    def scenario(run: Run) -> object:
        def step(x: torch.Tensor) -> torch.Tensor:
            y = x.detach().requires_grad_()
            with run.backward():
                (gradient,) = torch.autograd.grad((y.sin() * y).sum(), y)
            return gradient

        return [str(node) for node in make_fx(step)(torch.ones(3)).graph.nodes]

    assert_same_as_eager(scenario)


def test_forward_mode_over_a_captured_backward() -> None:
    def scenario(run: Run) -> object:
        with torch.autograd.forward_ad.dual_level():
            x = torch.randn(3, requires_grad=True)
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones(3))
            value = (dual.sin() * dual).sum()
            with run.backward():
                (gradient,) = torch.autograd.grad(value, x, create_graph=True)
            return tuple(torch.autograd.forward_ad.unpack_dual(gradient))

    assert_same_as_eager(scenario)
