"""Live nodes as a compiler sees them: their hooks are functions of Python that it can look into, one after the other.

What it cannot look into (functions of C++, code that unpacks saved tensors) is called outside of what it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from backbind import _C

Gradients = list[torch.Tensor | None]


_Result = TypeVar("_Result")


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _outside(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Calls what no compiler looks into."""
    return function(*arguments)


def _checked(hook: Callable[..., Any], before: Any, after: Any) -> Any:
    """What a hook has returned, or eager's error where it can be no gradient in the place of the other."""
    if after.shape != before.shape:
        raise RuntimeError(f"hook '{hook.__name__}' has changed the size of value")
    return after


class TraceableNode:
    """A live node for a graph that is compiled: the methods of `backbind._C.LiveNode` that a graph calls.

    Run by Python itself, they do what the live node does. Dynamo, when it traces them, finds plain loops over hooks.
    """

    def __init__(self, live: _C.LiveNode) -> None:
        self.live = live
        hooks = live.python_hooks
        self.is_opaque = hooks is None
        """Whether some hook is not a function of Python."""
        hooks = hooks or []
        self.tensor_hooks = tuple((hook, index) for kind, hook, index in hooks if kind == "tensor hook")
        self.node_pre_hooks = tuple(hook for kind, hook, _ in hooks if kind == "node pre-hook")
        self.node_post_hooks = tuple(hook for kind, hook, _ in hooks if kind == "node post-hook")
        self.accumulate_hooks = tuple(hook for kind, hook, _ in hooks if kind == "post-accumulate-grad hook")

    @property
    def must_be_left(self) -> bool:
        return self.live.must_be_left

    @property
    def name(self) -> str:
        return self.live.name

    def tensor_pre_hooks(self, gradients: Gradients) -> Gradients:
        if self._runs_as_it_is():
            given: Gradients = _outside(self.live.tensor_pre_hooks, gradients)
            return given
        changed = list(gradients)
        for hook, index in self.tensor_hooks:
            result = hook(changed[index])
            if result is not None:
                changed[index] = _checked(hook, changed[index], result)
        return changed

    def retain_grad(self, gradients: Gradients) -> Gradients:
        given: Gradients = _outside(self.live.retain_grad, gradients)
        return given

    def pre_hooks(self, gradients: Gradients) -> Gradients:
        if self._runs_as_it_is():
            given: Gradients = _outside(self.live.pre_hooks, gradients)
            return given
        changed = tuple(gradients)
        for hook in self.node_pre_hooks:
            result = hook(changed)
            if result is not None:
                changed = result if isinstance(result, tuple) else (result,)
        return list(changed)

    def post_hooks(
        self, results: Sequence[torch.Tensor | None], gradients: Sequence[torch.Tensor | None]
    ) -> Gradients:
        if self._runs_as_it_is():
            given: Gradients = _outside(self.live.post_hooks, results, gradients)
            return given
        changed = tuple(results)
        for hook in self.node_post_hooks:
            result = hook(changed, tuple(gradients))
            if result is not None:
                changed = result if isinstance(result, tuple) else (result,)
        return list(changed)

    def call(self, gradients: Gradients) -> Gradients:
        given: Gradients = _outside(self.live.call, gradients)
        return given

    def unpack(self) -> Gradients:
        given: Gradients = _outside(self.live.unpack)
        return given

    def accumulate(self, gradients: list[torch.Tensor | None]) -> None:
        self.live.accumulate(gradients)

    def accumulate_into(self, leaf: torch.Tensor, gradient: torch.Tensor | None) -> None:
        """As `accumulate`, for a compiler."""
        if self.is_opaque:
            _outside(self.live.accumulate, [gradient])
            return
        accumulate_grad(leaf, gradient)
        for hook in self.accumulate_hooks:
            hook(leaf)

    def _runs_as_it_is(self) -> bool:
        return self.is_opaque or not torch.compiler.is_dynamo_compiling()


def accumulate_grad(leaf: torch.Tensor, gradient: torch.Tensor | None) -> None:
    """Adds a gradient to a leaf, in operations that a compiler knows.

    The layout is that which the engine gives a gradient: the leaf's, where that is dense and does not overlap.
    """
    if gradient is None:
        return
    tensors = [gradient, leaf] if leaf.grad is None else [gradient, leaf, leaf.grad]
    if torch.is_grad_enabled() or any(one.layout is not torch.strided for one in tensors):
        _outside(_C.accumulate_grad, leaf, [gradient])
    elif leaf.grad is None:
        # A copy, because somebody else may have the gradient too; a compiler makes none where nobody has.
        leaf.grad = torch.empty_like(leaf, dtype=gradient.dtype).copy_(gradient)
    else:
        leaf.grad.add_(gradient)
