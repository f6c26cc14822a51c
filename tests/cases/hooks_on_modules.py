"""Hooks of modules, which stand on nodes of a kind of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import data, leaf


def _linear(inputs: int, outputs: int, seed: int, *, bias: bool = True) -> torch.nn.Linear:
    module = torch.nn.Linear(inputs, outputs, bias=bias)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(data(*parameter.shape, seed=seed))
    return module


def _described(gradients: Any) -> str:
    return " ".join("None" if g is None else str(tuple(g.shape)) for g in gradients)


@case(report=PYTORCH + "issues/115750")
def module_bw_hook_added_later(run_backward: RunBackward) -> Results:
    """A full-backward hook registered after the first run was ignored by cached code; right: the next run has it."""
    module = _linear(3, 2, 3, bias=False)

    def fivefold(module: torch.nn.Module, results: Any, gradients: Any) -> Any:
        return tuple(5 * g for g in results)

    out = {}
    for step in range(3):
        if step == 1:
            handle = module.register_full_backward_hook(fivefold)
        if step == 2:
            handle.remove()
        x = leaf(4, 3, seed=4)
        loss = module(x * 1.0).sum()
        run_backward(loss.backward)
        out[f"x{step}"] = x.grad
    return {**out, "weight": module.weight.grad}


@case()
def module_hooks_of_all_kinds(run_backward: RunBackward) -> Results:
    """Backward and pre-backward hooks of nested modules, some put first, some replacing, and hooks of all modules."""
    log: list[str] = []
    inner, outer = _linear(3, 4, 1), torch.nn.Sequential(torch.nn.Tanh(), _linear(4, 2, 2))
    model = torch.nn.Sequential(inner, outer)

    def hook(name: str, factor: float | None = None) -> Any:
        def run(module: Any, results: Any, gradients: Any = None) -> Any:
            log.append(f"{name}: {_described(results)} / {_described(gradients or ())}")
            return None if factor is None else tuple(None if g is None else g * factor for g in results)

        return run

    model.register_full_backward_hook(hook("model"))
    model.register_full_backward_pre_hook(hook("model pre", 2.0))
    inner.register_full_backward_pre_hook(hook("inner pre second"))
    inner.register_full_backward_pre_hook(hook("inner pre first", 0.5), prepend=True)
    inner.register_full_backward_hook(hook("inner", 3.0))
    outer.register_full_backward_hook(hook("outer second", 7.0))
    outer.register_full_backward_hook(hook("outer first"), prepend=True)
    with torch.nn.modules.module.register_module_full_backward_hook(hook("every module")):
        for step in range(2):
            x = leaf(5, 3, seed=step)
            run_backward(model(x * 1.0).pow(2).sum().backward)
            log.append(f"x {None if x.grad is None else x.grad.sum().item()!r}")
    return {"log": log, "parameters": [p.grad for p in model.parameters()]}


@case()
def module_hook_without_input_gradient(run_backward: RunBackward) -> Results:
    """A full-backward hook of a first layer, whose input wants no gradient: it runs, sees None, and eager warns."""
    log: list[str] = []
    module = _linear(3, 2, 1)
    module.register_full_backward_hook(
        lambda m, results, gradients: log.append(f"{_described(results)} / {_described(gradients)}")
    )
    for step in range(2):
        run_backward(module(data(4, 3, seed=step)).sum().backward)
    return {"log": log, "weight": module.weight.grad}


@case()
def module_hook_with_several_outputs(run_backward: RunBackward) -> Results:
    """A module that takes and gives several tensors, one of which nothing depends on, under hooks."""
    log: list[str] = []

    class Both(torch.nn.Module):
        def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return a * b, a + b, b.exp()

    module = Both()
    module.register_full_backward_pre_hook(lambda m, gradients: log.append("pre " + _described(gradients)))
    module.register_full_backward_hook(
        lambda m, results, gradients: log.append(f"{_described(results)} / {_described(gradients)}")
    )
    a, b = leaf(3, seed=1), leaf(3, seed=2)
    product, _, exponential = module(a, b)
    run_backward((product * exponential).sum().backward)
    return {"log": log, "a": a.grad, "b": b.grad}


@case()
def old_module_backward_hook(run_backward: RunBackward) -> Results:
    """The deprecated backward hook, which stands on the last node of a module."""
    log: list[str] = []
    module = _linear(3, 2, 1)
    module.register_backward_hook(
        lambda m, results, gradients: log.append(f"{_described(results)} / {_described(gradients)}")
    )
    x = leaf(4, 3, seed=2)
    run_backward(module(x).sum().backward)
    return {"log": log, "x": x.grad, "bias": module.bias.grad}
