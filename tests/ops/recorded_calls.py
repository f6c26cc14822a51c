"""Valid calls of operators: what the nodes of the oracle's programs saved, with gradients for it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import backbind
import torch
from backbind import _C
from backbind._operator import FunctionalOperator
from torch.autograd.graph import Node

from tests.oracle.extra_programs import EXTRAS
from tests.oracle.gradients import (
    Results,
    gradient_specs,
    has_known_shapes,
    has_nested_results,
    random_gradients,
)
from tests.oracle.graph_walk import reachable_nodes, tensors_with_history
from tests.oracle.kinds import kind_of
from tests.oracle.opinfo_programs import dense_programs, foreach_programs, module_programs, sparse_programs
from tests.oracle.outcome import SEED
from tests.oracle.programs import Program

_ORDER = 2
"""The graph of a program, and the graph that computing its gradients leaves."""


@dataclass(frozen=True)
class RecordedCall:
    """A call that returns."""

    operator: FunctionalOperator
    grads: list[torch.Tensor | None]
    needs_input_grad: list[bool]
    saved: list[object]


def recorded_calls(samples: int, per_node: int) -> list[RecordedCall]:
    """Calls from the first ``samples`` samples of each program, up to ``per_node`` of different kinds for each node."""
    recorder = _Recorder(per_node)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for program in _programs():
            torch.manual_seed(SEED)
            for sample in islice(program.samples(), samples):
                with suppress(Exception):  # some samples exist to be refused
                    recorder.record(sample.forward())
    return recorder.calls


def _programs() -> Iterator[Program]:
    yield from (extra.program() for extra in EXTRAS)
    for programs in (dense_programs(), foreach_programs(), module_programs(), sparse_programs()):
        yield from _first_dtype(programs)


def _first_dtype(programs: Iterable[Program]) -> Iterator[Program]:
    met: set[str] = set()
    for program in programs:
        name = program.identifier.rpartition("-")[0]
        if name not in met:
            met.add(name)
            yield program


class _Recorder:
    def __init__(self, per_node: int) -> None:
        self.calls: list[RecordedCall] = []
        self._per_node = per_node
        self._counts: Counter[str] = Counter()
        self._kinds: set[Hashable] = set()

    def record(self, results: object) -> None:
        met: set[Node] = set()
        outer = tensors_with_history(results)
        for _ in range(_ORDER):
            known: Results = {(one.grad_fn, one.output_nr): one for one in outer if one.grad_fn is not None}
            nodes = [node for node in reachable_nodes(node for node, _ in known) if node not in met]
            met.update(nodes)
            outer = [gradient for node in nodes for gradient in self._record_node(node, known)]

    def _record_node(self, node: Node, known: Results) -> Sequence[torch.Tensor]:
        """Record one node. Returns its gradients with the graph behind them."""
        name = _C.binding_name(node)
        if name is None or not has_known_shapes(node, known) or has_nested_results(node):
            return ()
        if self._counts[name] >= self._per_node:
            return ()
        specs = gradient_specs(node, known)
        packed = backbind.pack(node)
        kind = (name, tuple(spec.kind for spec in specs), tuple(map(kind_of, packed)))
        if kind in self._kinds:
            return ()
        grads = [
            grad if spec.exists else None for grad, spec in zip(random_gradients(specs), specs, strict=True)
        ]
        operator = backbind.ops.get(name)
        mask, *saved = packed
        assert isinstance(mask, list)
        tracked = [
            grad.requires_grad_() if grad is not None and grad.is_floating_point() else grad for grad in grads
        ]
        gradients = operator(tracked, mask, *saved)
        self._kinds.add(kind)
        self._counts[name] += 1
        plain = [None if grad is None else grad.detach() for grad in grads]
        self.calls.append(RecordedCall(operator, plain, mask, [_detached(one) for one in saved]))
        return [one for one in gradients if one is not None and one.grad_fn is not None]


def _detached(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, list):
        return [_detached(one) for one in value]
    return value
