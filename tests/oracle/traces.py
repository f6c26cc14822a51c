"""Graphs that make_fx makes of a functional operator, in every grad mode, run on what it saw and on other strides.

A graph may hold nothing that was true only for the tensors or in the mode that it was traced with.

Torch itself has another formula or decomposition for some nodes where they are traced, which rounds otherwise, has
zeros of the other sign or other strides. So where a graph differs from the delegate, it is compared with a graph that
make_fx makes of the delegate in the same way: torch's own node, traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import torch
from backbind._operator import FunctionalOperator
from torch.fx.experimental.proxy_tensor import make_fx

from tests.oracle.compare import difference, is_dense, plain_copy
from tests.oracle.live_node import Gradients
from tests.oracle.outcome import Outcome, outcome_of

_MODES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "in grad mode": torch.enable_grad,
    "under no_grad": torch.no_grad,
    "in inference mode": torch.inference_mode,
}

_GRAD, _NO_GRAD, _INFERENCE = _MODES

_LOOKS_AT_VALUES = "aten._local_scalar_dense"
"""In the refusal to trace a formula that looks at the number in a tensor."""

TracingMode: TypeAlias = Literal["real", "symbolic"]

_TRACING_MODES: dict[TracingMode, tuple[str, ...]] = {
    "real": (_NO_GRAD, _GRAD, _INFERENCE),
    "symbolic": (_NO_GRAD, _INFERENCE),
}
"""The modes in which each kind of graph is made, the first one first."""


def traced_differences(
    operator: FunctionalOperator, grads: Gradients, needed: Sequence[bool], saved: Sequence[object]
) -> list[tuple[str, str]] | None:
    """How each graph was made and in which way it differs from the delegate; None where no graph can be made."""
    arguments = _Arguments(grads, saved)
    if not all(map(_is_plain, arguments.tensors)):
        return None

    def call(function: Callable[..., Any], *tensors: torch.Tensor) -> Any:
        given, kept = arguments.rebuilt(tensors)
        return function(given, needed, *kept)

    comparison = _Comparison(operator, call, [tensor.detach() for tensor in arguments.tensors])
    made = [mode for mode in _TRACING_MODES if comparison.run(mode)]
    return comparison.found if made else None


class _Comparison:
    """The graphs of one call beside the delegate."""

    def __init__(
        self, operator: FunctionalOperator, call: Callable[..., Any], inputs: list[torch.Tensor]
    ) -> None:
        self.found: list[tuple[str, str]] = []
        self._operator = operator
        self._call = call
        self._inputs = inputs
        self._others = [_with_other_strides(tensor) for tensor in inputs]

    def run(self, tracing_mode: TracingMode) -> bool:
        """Compare the graphs of all modes. Returns whether there are any: no graph can hold a look at values."""
        graphs = {
            mode: self._graph(tracing_mode, mode, self._operator) for mode in _TRACING_MODES[tracing_mode]
        }
        if all(isinstance(graph, Outcome) for graph in graphs.values()):
            return False
        on_others: Outcome | None = None
        for mode, graph in graphs.items():
            how = f"{tracing_mode}, {mode}"
            if isinstance(graph, Outcome):
                self._report(how, self._difference_without_graph(mode, graph))
                continue
            outcome = _run(graph, self._others)
            if self._report(how, self._difference_on_inputs(tracing_mode, mode, _run(graph, self._inputs))):
                what = self._difference_on_others(tracing_mode, mode, outcome, on_others)
                self._report(how + ", run on other strides", what)
            if mode == _NO_GRAD:
                on_others = outcome
        return True

    def _graph(
        self, tracing_mode: TracingMode, mode: str, function: Callable[..., Any]
    ) -> Callable[..., object] | Outcome:
        """The graph of the operator or its delegate, or how making it failed."""
        made: list[Callable[..., object]] = []

        def trace() -> tuple[()]:
            with _MODES[mode]():
                graph = make_fx(lambda *tensors: self._call(function, *tensors), tracing_mode=tracing_mode)
                made.append(graph(*self._inputs))
            return ()

        outcome = outcome_of(trace)
        return made[0] if made else outcome

    def _difference_without_graph(self, mode: str, outcome: Outcome) -> str:
        if outcome.error is not None and _LOOKS_AT_VALUES in outcome.error[1]:
            return ""  # in this mode alone the formula takes a way that no graph can hold
        with _MODES[mode]():
            can_run = self._reference(self._inputs).ok
        return f"expected a graph as in other modes, got {outcome.error}" if can_run else ""

    def _difference_on_inputs(self, tracing_mode: TracingMode, mode: str, actual: Outcome) -> str:
        # Some formulas take another way where a graph may be built.
        with torch.enable_grad() if mode == _GRAD else torch.no_grad():
            expected = self._reference(self._inputs)
        what = difference(expected, actual)
        return what and self._difference_when_traced(tracing_mode, mode, self._inputs, actual, what)

    def _difference_on_others(
        self, tracing_mode: TracingMode, mode: str, actual: Outcome, without_grad: Outcome | None
    ) -> str:
        known = without_grad if mode == _INFERENCE else None
        if known is not None and tracing_mode == "real":
            return difference(known, actual)
        if known is not None:
            # Torch decomposes some operators in Python for symbolic sizes, in inference mode not the same ones.
            what = difference(_contiguous(known), _contiguous(actual))
        else:
            with torch.enable_grad() if mode == _GRAD else torch.no_grad():
                expected = self._reference(self._others)
            what = _difference_of_values(expected, actual)
        return what and self._difference_when_traced(tracing_mode, mode, self._others, actual, what)

    def _difference_when_traced(
        self,
        tracing_mode: TracingMode,
        mode: str,
        tensors: Sequence[torch.Tensor],
        actual: Outcome,
        otherwise: str,
    ) -> str:
        """The difference from a graph of the delegate, or ``otherwise`` where none can be made."""
        graph = self._graph(tracing_mode, mode, self._operator.delegate)
        if isinstance(graph, Outcome):
            return otherwise
        return difference(_run(graph, tensors), actual) and otherwise

    def _reference(self, tensors: Sequence[torch.Tensor]) -> Outcome:
        return outcome_of(lambda: self._call(self._operator.delegate, *tensors))

    def _report(self, how: str, what: str) -> bool:
        """Note what is wrong, if anything is. Returns whether nothing is."""
        if what:
            self.found.append((how, what))
        return not what


def _run(graph: Callable[..., object], tensors: Sequence[torch.Tensor]) -> Outcome:
    with torch.no_grad():
        return outcome_of(lambda: graph(*tensors))


def _difference_of_values(expected: Outcome, actual: Outcome) -> str:
    """In which way a graph made of other strides is wrong.

    Torch's own tracing makes a reshape the view that it was, which may not fit and then says so, or fits and gives
    other strides.
    """
    if not expected.ok or not actual.ok:
        return ""
    return difference(_contiguous(expected), _contiguous(actual))


def _contiguous(outcome: Outcome) -> Outcome:
    def made(one: torch.Tensor | None) -> torch.Tensor | None:
        return plain_copy(one) if one is not None and is_dense(one) else one

    return replace(outcome, gradients=tuple(map(made, outcome.gradients)))


class _Arguments:
    """Gradients and saved values, whose tensors can be exchanged."""

    def __init__(self, grads: Gradients, saved: Sequence[object]) -> None:
        self._grads = grads
        self._saved = saved
        single = [value for value in (*grads, *saved) if isinstance(value, torch.Tensor)]
        listed = [one for value in saved if isinstance(value, list) for one in value]
        self.tensors = [*single, *(one for one in listed if isinstance(one, torch.Tensor))]

    def rebuilt(self, tensors: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor | None], list[object]]:
        """The same with these tensors in place of its own."""
        others = {id(one): other for one, other in zip(self.tensors, tensors, strict=True)}

        def exchanged(value: Any) -> Any:
            if isinstance(value, list):
                return [exchanged(one) for one in value]
            return others[id(value)] if isinstance(value, torch.Tensor) else value

        return [exchanged(one) for one in self._grads], [exchanged(one) for one in self._saved]


def _is_plain(tensor: torch.Tensor) -> bool:
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and not tensor.is_nested
        and not tensor.is_quantized
        and tensor.layout == torch.strided
        and tensor.device.type == "cpu"
    )


def _with_other_strides(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, with the first dimension innermost, or at every second place of their memory."""
    if tensor.dim() < 2:
        return tensor.unsqueeze(-1).expand(*tensor.shape, 2).contiguous()[..., 0]
    backwards = tuple(reversed(range(tensor.dim())))
    return tensor.permute(backwards).contiguous().permute(backwards)
