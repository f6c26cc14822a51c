"""Autograd functions written in Python that tell a log when their backward runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from tests.replay.programs.observations import Log


def apply(function: type[torch.autograd.Function], log: Log, *args: torch.Tensor) -> Any:
    """Torch leaves the types of `apply` out."""
    untyped: Any = function.apply
    return untyped(log, *args)


class Twice(torch.autograd.Function):
    """Two differentiable results and one that is not; gradients that do not arrive are not made up."""

    @staticmethod
    def forward(ctx: Any, log: Log, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.log = log
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(left, right)
        sign = left.sign()
        ctx.mark_non_differentiable(sign)
        return left * right, left + right, sign

    @staticmethod
    def backward(ctx: Any, product: Any, total: Any, sign: Any) -> tuple[Any, ...]:
        ctx.log.add(f"backward of Twice, needs {ctx.needs_input_grad}", [product, total, sign])
        left, right = ctx.saved_tensors
        if product is None:
            return None, total, total
        if total is None:
            return None, product * right, product * left
        return None, product * right + total, product * left + total


class Materialized(torch.autograd.Function):
    """As Twice, but with zeros where no gradient arrives; one input gets no gradient."""

    @staticmethod
    def forward(ctx: Any, log: Log, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.log = log
        ctx.save_for_backward(left)
        return left * 2, right * 3

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, first: Any, second: Any) -> tuple[Any, ...]:
        ctx.log.add("backward of Materialized", [first, second])
        (left,) = ctx.saved_tensors
        return None, first * left, None


class InPlace(torch.autograd.Function):
    """Writes to its input."""

    @staticmethod
    def forward(ctx: Any, log: Log, value: torch.Tensor) -> torch.Tensor:
        ctx.log = log
        ctx.mark_dirty(value)
        return value.mul_(3)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
        ctx.log.add("backward of InPlace", [gradient])
        return None, gradient * 3


class NoGradient(torch.autograd.Function):
    """Whose gradient is undefined."""

    @staticmethod
    def forward(ctx: Any, log: Log, value: torch.Tensor) -> torch.Tensor:
        ctx.log = log
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
        ctx.log.add("backward of NoGradient", [gradient])
        return None, None


class OtherDtype(torch.autograd.Function):
    """Whose gradient has a dtype and a shape that the engine has to change."""

    @staticmethod
    def forward(ctx: Any, log: Log, row: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        ctx.log = log
        return value + row

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
        ctx.log.add("backward of OtherDtype", [gradient])
        return None, gradient.float(), gradient


class WithInnerBackward(torch.autograd.Function):
    """Runs a backward inside its backward."""

    @staticmethod
    def forward(ctx: Any, log: Log, value: torch.Tensor) -> torch.Tensor:
        ctx.log = log
        ctx.save_for_backward(value)
        return value.exp()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
        (value,) = ctx.saved_tensors
        with torch.enable_grad():
            inner = value.detach().requires_grad_()
            inner.exp().backward(gradient.detach())
        ctx.log.add("backward of WithInnerBackward", [gradient, inner.grad])
        return None, inner.grad


def backward_into(leaves: Sequence[torch.Tensor], log: Log) -> None:
    """Run a backward into leaves; into one after the other where hooks could tell in which order it reaches them.

    The accumulators of all leaves have one place in the engine's order, so how they come out of its heap depends on
    what else is in it: inside a backward, on the outer one's nodes (test_leaves_that_tie_in_a_backward_inside_a_hook).
    """
    with torch.enable_grad():
        losses = [(leaf * leaf).sum() for leaf in leaves]
        for loss in losses if log.has_hooks else [torch.stack(losses).sum()]:
            loss.backward()


class WithInnerBackwardIntoLeaves(torch.autograd.Function):
    """Runs a backward inside its backward, into leaves that the outer one reaches, too."""

    @staticmethod
    def forward(ctx: Any, log: Log, value: torch.Tensor, *leaves: torch.Tensor) -> torch.Tensor:
        ctx.log = log
        ctx.leaves = leaves
        return value * sum((leaf.sum() for leaf in leaves), torch.zeros(()))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
        wanted = [leaf for leaf in ctx.leaves if leaf.requires_grad]
        if wanted:
            backward_into(wanted, ctx.log)
        ctx.log.add(
            "backward of WithInnerBackwardIntoLeaves", [gradient, *(leaf.grad for leaf in ctx.leaves)]
        )
        return None, gradient, *(gradient.sum().expand(leaf.shape) for leaf in ctx.leaves)


class Fails(torch.autograd.Function):
    """Whose backward raises."""

    @staticmethod
    def forward(ctx: Any, log: Log, value: torch.Tensor) -> torch.Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
        raise ValueError("Fails does")
