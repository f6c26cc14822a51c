"""The truth: what a live node gives, called directly or run by the autograd engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.autograd.graph import GradientEdge, Node

from backbind import _C
from tests.oracle.graph_walk import reaches
from tests.oracle.outcome import Outcome, outcome_of

Gradients = Sequence[torch.Tensor | None]


def call_directly(node: Node, grads: Gradients) -> Outcome:
    """Call the node as a Python function. It computes what its edges ask for."""
    return outcome_of(lambda: node(*grads))  # type: ignore[operator]


@dataclass(frozen=True)
class InputSpan:
    """The edges of one differentiable input: one, or one for each element of a list."""

    begin: int
    size: int

    def edges(self, node: Node) -> tuple[tuple[Node | None, int], ...]:
        return tuple(node.next_functions[self.begin : self.begin + self.size])


def input_spans(node: Node, operator: _C.Operator, saved: Sequence[object]) -> list[InputSpan]:
    """The edges that each flag of needs_input_grad stands for."""
    sizes = {
        argument.saved.removesuffix("_size"): value
        for argument, value in zip(operator.saved, saved, strict=True)
        if argument.saved.endswith("_size") and argument.saved.removesuffix("_size") in operator.inputs
    }
    spans = []
    begin = 0
    for name in operator.inputs:
        size = sizes.get(name, 1)
        assert isinstance(size, int)
        spans.append(InputSpan(begin, size))
        begin += size
    assert begin == len(node.next_functions), f"{operator.name}: {begin} edges in all"
    return spans


class EngineRuns:
    """Runs one node in the autograd engine, with any needs_input_grad that ``inputs=`` can ask for."""

    def __init__(self, node: Node, spans: list[InputSpan]) -> None:
        self._node = node
        self._spans = spans

    def can_want(self, needs_input_grad: Sequence[bool]) -> bool:
        """Whether the engine can be made to want just these gradients of the node.

        It wants whole nodes, and all that lead there: two inputs that come from one node go together.
        """
        wanted, unwanted = self._functions(needs_input_grad, True), self._functions(needs_input_grad, False)
        return bool(wanted) and not any(reaches(function, wanted) for function in unwanted)

    def run(self, grads: Gradients, needs_input_grad: Sequence[bool]) -> Outcome:
        """The gradients that leave the node, after the engine fitted them to the inputs."""
        inputs = [
            GradientEdge(function, position)
            for span, flag in zip(self._spans, needs_input_grad, strict=True)
            if flag
            for function, position in span.edges(self._node)
            if function is not None
        ]
        given = [(position, grad) for position, grad in enumerate(grads) if grad is not None]
        seen: list[tuple[torch.Tensor | None, ...]] = []
        handle = self._node.register_hook(lambda outgoing, _: seen.append(outgoing))

        def run() -> object:
            torch.autograd.grad(
                [GradientEdge(self._node, position) for position, _ in given],
                inputs,
                [grad for _, grad in given],
                retain_graph=True,
                allow_unused=True,
            )
            return seen[0]

        try:
            outcome = outcome_of(run)
        finally:
            handle.remove()
        # What went wrong behind the node is not the node's.
        return Outcome(seen[0]) if seen else outcome

    def fitted(self, outcome: Outcome) -> Outcome:
        """Do to gradients what the engine does between two nodes: reduce to the input's shape, convert to its dtype."""
        if not outcome.ok:
            return outcome
        edges = [edge for span in self._spans for edge in span.edges(self._node)]
        return Outcome(
            tuple(_fitted(gradient, *edge) for gradient, edge in zip(outcome.gradients, edges, strict=True))
        )

    def _functions(self, needs_input_grad: Sequence[bool], flag: bool) -> set[Node]:
        return {
            function
            for span, needed in zip(self._spans, needs_input_grad, strict=True)
            if needed is flag
            for function, _ in span.edges(self._node)
            if function is not None
        }


def _fitted(gradient: torch.Tensor | None, function: Node | None, position: int) -> torch.Tensor | None:
    if gradient is None or function is None:
        return gradient
    metadata = function._input_metadata[position]
    if not metadata.is_nested_tensor and gradient.shape != tuple(metadata.shape):
        gradient = gradient.sum_to_size(tuple(metadata.shape))
    return gradient if gradient.dtype == metadata.dtype else gradient.to(metadata.dtype)
