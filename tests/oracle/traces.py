"""Graphs that make_fx makes of a functional operator, in every grad mode, run on what it saw and on other strides.

A graph may hold nothing that was true only for the tensors or in the mode that it was traced with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeAlias

import torch
from backbind._operator import FunctionalOperator
from torch.fx.experimental.proxy_tensor import make_fx

from tests.oracle.compare import difference, plain_copy
from tests.oracle.live_node import Gradients
from tests.oracle.outcome import Outcome, outcome_of

_MODES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "in grad mode": torch.enable_grad,
    "under no_grad": torch.no_grad,
    "in inference mode": torch.inference_mode,
}

_GRAD, _NO_GRAD, _INFERENCE = _MODES

_SUMS_IN_ORDER_OF_MEMORY = ("ConvDepthwise3DBackward0", "ForeachMmBackward0")
"""Whose graph, made of other strides, adds in another order: torch's own tracing takes what was contiguous when it was
made for contiguous, and the kernels of what is not add up differently."""

_OTHER_WAY_WHEN_TRACED = (
    "CumprodBackward0",
    "MaxBackward1",
    "MinBackward1",
    "OrmqrBackward0",
    "ProdBackward0",
    "UpsampleBicubic2DBackwardBackward0",
    "UpsampleBilinear2DBackwardBackward0",
    "UpsampleNearest1DBackwardBackward0",
    "UpsampleNearestExact1DBackwardBackward0",
)
"""For which torch itself has another formula or decomposition where it is traced, which rounds otherwise, has zeros of
the other sign or other strides. That a graph can be made in every mode, and runs, is all that is asked of them."""

TracingMode: TypeAlias = Literal["real", "symbolic"]

_TRACING_MODES: dict[TracingMode, tuple[str, ...]] = {
    "real": (_NO_GRAD, _GRAD, _INFERENCE),
    "symbolic": (_NO_GRAD, _INFERENCE),
}
"""The modes in which each kind of graph is made, the first one first."""

_READS_MEMORY = ("PackPaddedSequenceBackward0",)
"""Whose kernel reads numbers of a tensor without asking whether it has any: symbolic tensors crash it."""


def traced_differences(
    operator: FunctionalOperator, grads: Gradients, needed: Sequence[bool], saved: Sequence[object]
) -> list[tuple[str, str]] | None:
    """How each graph was made and in which way it differs from the delegate; None where no graph can be made."""
    arguments = _Arguments(grads, saved)
    if not all(map(_is_plain, arguments.tensors)):
        return None
    inputs = [tensor.detach() for tensor in arguments.tensors]
    others = [_with_other_strides(tensor) for tensor in inputs]

    def call(function: Callable[..., Any], *tensors: torch.Tensor) -> Any:
        given, kept = arguments.rebuilt(tensors)
        return function(given, needed, *kept)

    found: list[tuple[str, str]] = []
    made_any = False
    for tracing_mode, modes in _TRACING_MODES.items():
        if tracing_mode == "symbolic" and operator.name in _READS_MEMORY:
            continue
        graphs = {
            mode: _graph(tracing_mode, _MODES[mode], lambda *tensors: call(operator, *tensors), inputs)
            for mode in modes
        }
        if all(isinstance(graph, Outcome) for graph in graphs.values()):
            continue  # an operator that asks for values, which no graph can hold
        made_any = True
        on_others: Outcome | None = None
        for mode, graph in graphs.items():
            how = f"{tracing_mode}, {mode}"
            if isinstance(graph, Outcome):
                with _MODES[mode]():
                    can_run = outcome_of(lambda: call(operator.delegate, *inputs)).ok
                if can_run:
                    found.append((how, f"expected a graph as in other modes, got {graph.error}"))
                continue
            # Some formulas take another way where a graph may be built.
            with torch.enable_grad() if mode == _GRAD else torch.no_grad():
                expected = outcome_of(lambda: call(operator.delegate, *inputs))
                expected_on_others = outcome_of(lambda: call(operator.delegate, *others))
            actual = _run(graph, inputs)
            actual_on_others = _run(graph, others)
            if operator.name in _OTHER_WAY_WHEN_TRACED:
                if expected.ok and not actual.ok:
                    found.append((how, difference(expected, actual)))
                continue
            if what := difference(expected, actual):
                found.append((how, what))
            if mode == _INFERENCE and on_others is not None:
                what = difference(on_others, actual_on_others)
            elif operator.name in _SUMS_IN_ORDER_OF_MEMORY:
                what = ""
            else:
                what = _difference_of_values(expected_on_others, actual_on_others)
            if what:
                found.append((how + ", run on other strides", what))
            if mode == _NO_GRAD:
                on_others = actual_on_others
    return found if made_any else None


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
        is_dense = one is not None and one.layout == torch.strided and not one.is_nested
        return plain_copy(one) if one is not None and is_dense else one

    return Outcome(tuple(map(made, outcome.gradients)))


def _graph(
    tracing_mode: TracingMode,
    mode: Callable[[], AbstractContextManager[object]],
    function: Callable[..., object],
    inputs: Sequence[torch.Tensor],
) -> Callable[..., object] | Outcome:
    """The graph, or how making it failed."""
    made: list[Callable[..., object]] = []

    def trace() -> tuple[()]:
        with mode():
            made.append(make_fx(function, tracing_mode=tracing_mode)(*inputs))
        return ()

    outcome = outcome_of(trace)
    return made[0] if made else outcome


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
