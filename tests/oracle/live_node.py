"""The reference: what a live node gives, called directly or run by the autograd engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from backbind._operator import FunctionalOperator
from torch.autograd.graph import GradientEdge, Node, _engine_run_backward

from tests.oracle.graph_walk import reaches
from tests.oracle.outcome import Outcome, outcome_of

_REFUSED = "returned an invalid gradient"
"""In the engine's complaint about what a node gave."""

_UNFIT = "invalid gradient at index"
"""In the engine's complaint about a gradient that it shall start from."""

Gradients = Sequence[torch.Tensor | None]


def run_engine(
    roots: Sequence[GradientEdge], gradients: Sequence[torch.Tensor], wanted: Sequence[GradientEdge]
) -> None:
    """Run a backward that wants just the gradients at ``wanted``, keeps the graph and accumulates nothing.

    torch.autograd.grad does the same, but reads the shapes of nested results, which fails.
    """
    _engine_run_backward(tuple(roots), tuple(gradients), True, False, tuple(wanted), True, False)


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


def input_spans(node: Node, operator: FunctionalOperator, saved: Sequence[object]) -> list[InputSpan]:
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


def edge_flags(spans: Sequence[InputSpan], needs_input_grad: Sequence[bool]) -> list[bool]:
    """The flags of inputs, repeated for each edge."""
    return [flag for flag, span in zip(needs_input_grad, spans, strict=True) for _ in range(span.size)]


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

    def takes(self, grads: Gradients) -> bool:
        """Whether the engine would pass these gradients to the node at all."""
        outcome = self.run(grads, [True] * len(self._spans))
        return outcome is None or outcome.error is None or _UNFIT not in outcome.error[1]

    def run(self, grads: Gradients, needs_input_grad: Sequence[bool]) -> Outcome | None:
        """The gradients that leave the node, after the engine fitted them to the inputs.

        None where the node ran but the engine refused what it gave: a defect of the node, which hides its gradients.
        """
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
            run_engine(
                [GradientEdge(self._node, position) for position, _ in given],
                [grad for _, grad in given],
                inputs,
            )
            return seen[0]

        try:
            outcome = outcome_of(run)
        finally:
            handle.remove()
        if seen:
            return Outcome(seen[0])  # What went wrong behind the node is not the node's.
        refused = outcome.error is not None and _REFUSED in outcome.error[1]
        return None if refused else outcome

    def fitted(self, outcome: Outcome) -> Outcome:
        """Do to gradients what the engine does between two nodes: reduce to the input's shape, convert to its dtype."""
        if not outcome.ok:
            return outcome
        edges = [edge for span in self._spans for edge in span.edges(self._node)]
        if len(edges) != len(outcome.gradients):
            return outcome
        pairs = list(zip(outcome.gradients, edges, strict=True))
        return outcome_of(lambda: [_fitted(gradient, *edge) for gradient, edge in pairs])

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
    if not metadata.is_cpp_nested_tensor and gradient.shape != tuple(metadata.shape):
        gradient = gradient.sum_to_size(tuple(metadata.shape))
    return gradient if gradient.dtype == metadata.dtype else gradient.to(metadata.dtype)
