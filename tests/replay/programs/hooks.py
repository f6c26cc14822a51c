"""Hooks of every kind, and what they do besides telling a log that they were called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch.autograd.graph import get_gradient_edge, register_multi_grad_hook

from tests.replay.programs.functions import backward_into
from tests.replay.programs.lifetimes import Lifetimes
from tests.replay.programs.observations import Log

Gradients: TypeAlias = Sequence[torch.Tensor | None]

KINDS = ("tensor", "retain", "before node", "behind node", "post-accumulate", "all of two", "any of two")
REPLACEMENTS = ("double", "same", "expanded", "conjugate view")
DOES = (
    "nothing",
    *REPLACEMENTS,
    "in place",
    "add a hook",
    "remove itself",
    "remove the first",
    "remove the last",
    "add a hook on a leaf",
    "add a hook on a node",
    "reentrant backward",
    "final callback",
    "clear a gradient",
    "leave no_grad behind",
)
FAILS = ("raise", "wrong shape", "wrong type")
"""Drawn seldom, because nothing is compared behind them."""

_DEEPEST = 2
"""A hook on a leaf that runs a backward into that leaf would go on for ever."""


@dataclass
class Hooks:
    """The hooks of one run of a program."""

    log: Log
    lifetimes: Lifetimes
    leaves: Sequence[torch.Tensor]
    handles: list[Any] = field(default_factory=list)
    _count: int = 0
    _depth: int = 0
    """How many backwards hooks run, one inside the other."""
    _all_handles: list[Any] = field(default_factory=list)
    """Those too that were taken from `handles`."""
    _nodes: list[Any] = field(default_factory=list)
    """A leaf keeps no accumulator alive, and with it its hooks would go."""

    def register(self, kind: str, does: str, tensor: torch.Tensor, other: torch.Tensor) -> None:
        number = self._count
        self._count += 1
        name = f"{kind} hook {number} ({does})"
        if kind == "retain":
            tensor.retain_grad()
            return
        self.log.has_hooks = True
        call = self._function(kind, name, does, tensor)
        if kind == "tensor":
            handle: Any = tensor.register_hook(call)
        elif kind == "post-accumulate":
            handle = tensor.register_post_accumulate_grad_hook(call)
        elif kind in ("all of two", "any of two"):
            handle = register_multi_grad_hook([tensor, other], call, mode=kind[:3])  # type: ignore[arg-type]
        else:
            node = get_gradient_edge(tensor).node
            if tensor.is_leaf:
                self._nodes.append(node)
            handle = node.register_prehook(call) if kind == "before node" else node.register_hook(call)
        self.handles.append(handle)
        self._all_handles.append(handle)

    def remove(self, at: int) -> None:
        if self.handles:
            self.handles.pop(at % len(self.handles)).remove()

    def remove_all(self) -> None:
        """Torch holds hooks from C++, where no collector sees that they hold their own tensors."""
        for handle in self._all_handles:
            handle.remove()
        self._nodes.clear()

    def _function(self, kind: str, name: str, does: str, tensor: torch.Tensor) -> Callable[..., Any]:
        place = len(self.handles)
        calls = 0

        def called(
            arguments: Gradients, replaces: Gradients | None
        ) -> tuple[torch.Tensor | None, ...] | None:
            nonlocal calls
            calls += 1
            self.log.add(f"{name} called, grad mode {torch.is_grad_enabled()}", arguments)
            for position, argument in enumerate(arguments):
                self.lifetimes.watch(argument, f"argument {position} of call {calls} of {name}")
            self._act(does, kind, place, tensor, calls)
            if replaces is None:
                return None
            return _replaced(does, replaces)

        def on_tensor(gradient: torch.Tensor) -> torch.Tensor | None:
            result = called([gradient], [gradient])
            return None if result is None else result[0]

        def behind_node(inputs: Gradients, outputs: Gradients) -> Any:
            return called([*inputs, *outputs], inputs)

        def on_leaf(leaf: torch.Tensor) -> None:
            called([leaf, leaf.grad], None)

        def on_several(gradients: Any) -> None:
            called(gradients if isinstance(gradients, (list, tuple)) else [gradients], None)

        functions: dict[str, Callable[..., Any]] = {
            "tensor": on_tensor,
            "before node": lambda gradients: called(gradients, gradients),
            "behind node": behind_node,
            "post-accumulate": on_leaf,
            "all of two": on_several,
            "any of two": on_several,
        }
        return functions[kind]

    def _act(self, does: str, kind: str, place: int, tensor: torch.Tensor, calls: int) -> None:
        if does == "raise":
            raise RuntimeError("a hook raises")
        if does == "add a hook" and calls == 1:
            self.register(kind, "nothing", tensor, tensor)
        elif does == "remove itself" and place < len(self.handles):
            self.handles[place].remove()
        elif does == "remove the first" and self.handles:
            self.handles[0].remove()
        elif does == "remove the last" and self.handles:
            self.handles[-1].remove()
        elif does == "add a hook on a leaf" and calls == 1:
            wanted = [leaf for leaf in self.leaves if leaf.requires_grad]
            if wanted:
                self.register("tensor", "double", wanted[0], wanted[0])
                self.register("post-accumulate", "nothing", wanted[-1], wanted[-1])
        elif does == "add a hook on a node" and calls == 1:
            wanted = [leaf for leaf in self.leaves if leaf.requires_grad]
            if wanted:
                self.register("before node", "nothing", wanted[0], wanted[0])
        elif does == "reentrant backward" and self._depth < _DEEPEST:
            self._depth += 1
            try:
                self._run_backward()
            finally:
                self._depth -= 1
        elif does == "final callback":
            engine: Any = torch.autograd.Variable._execution_engine
            engine.queue_callback(
                lambda: self.log.add(f"final callback, grad mode {torch.is_grad_enabled()}")
            )
        elif does == "clear a gradient":
            self.leaves[0].grad = None
        elif does == "leave no_grad behind":
            torch.set_grad_enabled(False)

    def _run_backward(self) -> None:
        wanted = [leaf for leaf in self.leaves[:2] if leaf.requires_grad]
        if wanted:
            backward_into(wanted, self.log)


def _replaced(does: str, gradients: Gradients) -> tuple[torch.Tensor | None, ...] | None:
    replace: dict[str, Callable[[torch.Tensor], Any]] = {
        "double": lambda gradient: gradient * 2,
        "same": lambda gradient: gradient,
        "expanded": lambda gradient: gradient.sum().expand(gradient.shape),
        "conjugate view": lambda gradient: torch.complex(gradient, gradient).conj().imag,
        "in place": lambda gradient: gradient.mul_(2),
        "wrong shape": lambda gradient: gradient.new_ones(7, 3),
        "wrong type": lambda gradient: "a text",
    }
    if does not in replace:
        return None
    made = tuple(None if gradient is None else replace[does](gradient) for gradient in gradients)
    return None if does == "in place" else made
