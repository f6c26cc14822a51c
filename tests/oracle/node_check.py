"""All comparisons for one live node: its operator, the operator's delegate, its step, graphs made of the operator."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial

import backbind
import torch
from torch.autograd.graph import Node
from torch.utils._pytree import tree_leaves

from tests.oracle.adversarial import PATTERNS, adversarial, adversarial_memory, is_changeable
from tests.oracle.compare import difference, is_dense, plain_copy, tensor_difference
from tests.oracle.gradients import (
    Results,
    gradient_specs,
    random_gradients,
    scattered_in_memory,
)
from tests.oracle.kinds import kind_of, kind_of_list
from tests.oracle.live_node import EngineRuns, Gradients, call_directly, edge_flags, input_spans
from tests.oracle.masks import subsets
from tests.oracle.outcome import Outcome, as_operators_say, outcome_of
from tests.oracle.steps import Steps
from tests.oracle.tally import Column, Disagreement, Tally
from tests.oracle.traces import traced_differences

_COMBINATIONS = 64
"""Masks times patterns of undefined gradients are all tried up to so many; else each with the full other one."""

_LIST = 8
"""No node has so many results unless they are a list."""

_STEP_AGAINST_LIVE = "step against the live node"

_FEW = 4
"""Elements that have no room for the special values, so that all patterns of them are tried."""


class NodeCheck:
    """All comparisons for one live node."""

    def __init__(self, node: Node, known: Results, tally: Tally) -> None:
        self.disagreements: list[Disagreement] = []
        self.columns: set[Column] = set()
        """What was compared with a gradient."""
        self._node = node
        self._operator = backbind.ops.for_node(node)
        self.name = self._operator.name
        self._tally = tally
        self._specs = gradient_specs(node, known)
        self._existing = [spec.exists for spec in self._specs]
        self._needed: tuple[bool, ...] = ()
        self._saved: tuple[object, ...] = ()
        self._unpackable = outcome_of(self._pack)
        self._is_symbolic = any(isinstance(value, torch.SymInt) for value in tree_leaves(self._saved))
        self._steps = Steps(node)
        self.kind: Hashable = (
            self.name,
            self._needed,
            kind_of_list([spec.kind for spec in self._specs], of_tensors=len(self._specs) > _LIST),
            tuple(map(kind_of, self._saved)),
            self._unpackable.error,
        )
        self._number = zlib.crc32(repr(self.kind).encode())
        """The kind as a number: what is chosen by it is the same in every run."""

    def _pack(self) -> tuple[()]:
        packed = backbind.pack(self._node)
        needed, saved = packed[0], packed[1:]
        assert isinstance(needed, list)
        self._needed, self._saved = tuple(needed), saved
        return ()

    @property
    def elements(self) -> int:
        """How many numbers the saved tensors have, as far as they are dense."""
        return sum(one.numel() for one in _tensors(self._saved) if is_dense(one))

    def gradients_fit(self) -> bool:
        """Whether the engine would pass gradients of the assumed layouts to this node."""
        if not self._unpackable.ok or not all(self._existing):
            return True
        engine = EngineRuns(self._node, input_spans(self._node, self._operator, self._saved))
        with torch.no_grad():
            return engine.takes(random_gradients(self._specs))

    def run(self, *, traces: bool, whole: bool = True) -> list[torch.Tensor]:
        """Make all comparisons, those of traced graphs if asked for; or, if not ``whole``, the first one and one of the
        others, which the kind decides.

        Returns the gradients with the graph that computing them left.
        """
        grads = random_gradients(self._specs)
        if not self._unpackable.ok:
            live = call_directly(self._node, grads)
            self._compare(Column.OPERATOR, "pack against the live node", "all", live, self._unpackable)
            return []
        gradients = self._differentiable_call(grads)
        others = [
            self._undefined_gradients,
            self._scattered_gradients,
            self._masks,
            self._saved_values_that_require_grad,
            self._adversarial_values,
        ]
        with torch.no_grad():
            for compare in others if whole else [others[self._number % len(others)]]:
                compare(grads)
        if traces:
            self._traces(grads)
        return gradients

    def _differentiable_call(self, grads: list[torch.Tensor]) -> list[torch.Tensor]:
        tracked = [
            grad.detach().requires_grad_() if grad.is_floating_point() or grad.is_complex() else grad
            for grad in grads
        ]
        # The first pattern of undefined gradients that the node can take, usually the one without any.
        for pattern in subsets(self._existing):
            given = [grad if flag else None for grad, flag in zip(tracked, pattern, strict=True)]
            live = call_directly(self._node, given)
            self._against_live(live, given, f"with a graph, gradients {_flags(pattern)}", history=True)
            if live.ok:
                return [one for one in live.gradients if one is not None and one.grad_fn is not None]
        return []

    def _undefined_gradients(self, grads: list[torch.Tensor]) -> None:
        for pattern in subsets(self._existing):
            given = [grad if flag else None for grad, flag in zip(grads, pattern, strict=True)]
            self._against_live(call_directly(self._node, given), given, f"gradients {_flags(pattern)}")

    def _scattered_gradients(self, grads: list[torch.Tensor]) -> None:
        scattered = self._given([scattered_in_memory(grad) for grad in grads])
        self._against_live(call_directly(self._node, scattered), scattered, "gradients scattered in memory")

    def _masks(self, grads: list[torch.Tensor]) -> None:
        spans = input_spans(self._node, self._operator, self._saved)
        engine = EngineRuns(self._node, spans)
        for mask, given in self._masks_and_patterns(grads):
            described = (
                f"needs_input_grad {_flags(mask)}, gradients {_flags([grad is not None for grad in given])}"
            )
            actual = self._call(given, mask)
            if any(grad is not None for grad in given) and engine.can_want(mask):
                live = engine.run(given, mask)
                if live is not None:
                    fitted = engine.fitted(actual)
                    self._compare(Column.OPERATOR, "operator against the engine", described, live, fitted)
            delegate = self._against_delegate(given, mask, described, actual)
            if delegate is not None:
                self._step_against(delegate, "step against delegate", given, mask, described)

    def _masks_and_patterns(self, grads: list[torch.Tensor]) -> Iterator[tuple[tuple[bool, ...], Gradients]]:
        masks = list(subsets(self._needed))
        patterns = list(subsets(self._existing))
        everything = len(masks) * len(patterns) <= _COMBINATIONS
        for mask in masks:
            for pattern in patterns:
                if everything or mask == masks[0] or pattern == patterns[0]:
                    yield mask, [grad if flag else None for grad, flag in zip(grads, pattern, strict=True)]

    def _saved_values_that_require_grad(self, grads: list[torch.Tensor]) -> None:
        """What is computed is for needs_input_grad to say, not for what the forward happened to save."""
        given = self._given(grads)
        live = call_directly(self._node, given)
        for described, change in _REQUIRES_GRAD.items():
            saved = [_changed(value, change) for value in self._saved]
            actual = outcome_of(lambda saved=saved: self._operator(given, self._needed, *saved))  # type: ignore[misc]
            self._compare(Column.REQUIRES_GRAD, "operator against the live node", described, live, actual)
            if self._operator.mode == "inline" and not self._is_symbolic:
                actual = outcome_of(lambda saved=saved: self._operator.delegate(given, self._needed, *saved))  # type: ignore[misc]
                self._compare(Column.REQUIRES_GRAD, "delegate against the live node", described, live, actual)

    def _adversarial_values(self, grads: list[torch.Tensor]) -> None:
        saved = [one for one in _tensors(self._saved) if is_changeable(one)]
        if self._samples_beside_its_tensors():
            saved = []
        sizes = [one.numel() for one in (*grads, *saved)]
        # Which pattern comes first is left to the kind, so that kinds see each.
        first = self._number
        for number in range(PATTERNS if min(sizes, default=0) < _FEW else 1):
            pattern = first + number
            ordinary = self._given(grads)
            special = self._given([adversarial(grad, pattern) for grad in grads])
            self._against_live_with("special gradients", special, [], pattern)
            if saved:
                self._against_live_with("special saved values", ordinary, saved, pattern + 1)
                self._against_live_with("special gradients and saved values", special, saved, pattern + 2)

        self._special_numbers(self._given([adversarial(grad, first) for grad in grads]))

    def _samples_beside_its_tensors(self) -> bool:
        """Whether torch's kernel reads beside its tensors where a grid holds infinities or NaNs: with bilinear
        interpolation and border or reflection padding. The operators refuse such grids
        (tests/ops/test_preconditions_of_kernels.py)."""
        if self.name not in ("GridSampler2DBackward0", "GridSampler2DBackwardBackward0"):
            return False
        named = {
            argument.name: value for argument, value in zip(self._operator.saved, self._saved, strict=True)
        }
        return named["interpolation_mode"] == 0 and named["padding_mode"] != 0

    def _special_numbers(self, given: list[torch.Tensor | None]) -> None:
        """A live node's numbers cannot be exchanged, so here the delegate is the reference."""
        if self._operator.mode != "inline" or self._is_symbolic:
            return
        tensors = (*(grad for grad in given if grad is not None), *_tensors(self._saved))
        numbers = _COMPLEX_NUMBERS if any(one.is_complex() for one in tensors) else _NUMBERS
        for place, argument in enumerate(self._operator.saved):
            if argument.schema_type.rstrip("?") != "Scalar" or self._saved[place] is None:
                continue
            for number in numbers:
                saved = [*self._saved[:place], number, *self._saved[place + 1 :]]
                call = partial(self._operator, given, self._needed, *saved)
                delegate = partial(self._operator.delegate, given, self._needed, *saved)
                self._compare(
                    Column.ADVERSARIAL,
                    "operator against delegate",
                    f"special gradients, {argument.name} {number}",
                    outcome_of(delegate),
                    outcome_of(call),
                )

    def _against_live_with(
        self, described: str, given: Gradients, saved: Sequence[torch.Tensor], pattern: int
    ) -> None:
        with adversarial_memory(saved, pattern):
            live = call_directly(self._node, given)
            described = f"{described}, pattern {pattern % PATTERNS}"
            self._against_live(live, given, described, column=Column.ADVERSARIAL)

    def _traces(self, grads: list[torch.Tensor]) -> None:
        given = self._given(grads)
        with torch.no_grad():
            if self._is_symbolic or not self._call(given, self._needed).ok:
                return
        found = traced_differences(self._operator, given, self._needed, self._saved)
        if found is None:
            return
        self._tally.comparisons[Column.TRACED] += 1
        self.columns.add(Column.TRACED)
        for described, what in found:
            self._report("traced graph against the operator", described, what)

    def _given(self, grads: list[torch.Tensor]) -> list[torch.Tensor | None]:
        return [grad if flag else None for grad, flag in zip(grads, self._existing, strict=True)]

    def _against_live(
        self,
        live: Outcome,
        given: Gradients,
        described: str,
        *,
        history: bool = False,
        column: Column = Column.OPERATOR,
    ) -> None:
        actual = self._call(given, self._needed)
        self._compare(column, "operator against the live node", described, live, actual, history=history)
        if self._operator.mode == "inline":
            self._against_delegate(given, self._needed, described, actual, history=history)
        if not history:
            self._step_against(live, _STEP_AGAINST_LIVE, given, self._needed, described)

    def _against_delegate(
        self,
        given: Gradients,
        mask: Sequence[bool],
        described: str,
        actual: Outcome,
        *,
        history: bool = False,
    ) -> Outcome | None:
        """Compare, and give what the delegate gave; None if it cannot be asked."""
        if self._is_symbolic:
            return None  # Symbolic sizes go through the dispatcher, which has no way to ask for the delegate.
        delegate = outcome_of(lambda: self._operator.delegate(given, mask, *self._saved))
        self._compare(
            Column.DELEGATE, "operator against delegate", described, delegate, actual, history=history
        )
        return delegate

    def _step_against(
        self, expected: Outcome, compared: str, given: Gradients, mask: Sequence[bool], described: str
    ) -> None:
        # Below autograd's keys no version counter tells of a write, so the numbers themselves are looked at.
        # A step runs over dense tensors only.
        watched = [one for one in (*given, *_tensors(self._saved)) if one is not None and is_dense(one)]
        before = [] if Column.STEP in self.columns else [plain_copy(one) for one in watched]
        spans = input_spans(self._node, self._operator, self._saved)
        actual = self._steps.run(given, edge_flags(spans, mask))
        if any(tensor_difference(old, plain_copy(new)) for old, new in zip(before, watched, strict=False)):
            self._report("step", described, "an argument was written to")
        if actual is not None:
            said = as_operators_say(self.name, actual)
            self._compare(Column.STEP, compared, described, expected, said)
            if expected.ok and actual.ok and compared == _STEP_AGAINST_LIVE:
                self._compare_versions(described, expected, actual)

    def _compare_versions(self, described: str, expected: Outcome, actual: Outcome) -> None:
        """How often each gradient was written to in place: the next node's hooks see it."""
        for position, (left, right) in enumerate(zip(expected.gradients, actual.gradients, strict=True)):
            if left is not None and right is not None and left._version != right._version:
                what = f"gradient {position}: expected version {left._version}, got {right._version}"
                self._report(_STEP_AGAINST_LIVE, described, what)

    def _call(self, grads: Gradients, mask: Sequence[bool]) -> Outcome:
        watched = [one for one in (*grads, *_tensors(self._saved)) if one is not None]
        before = [one._version for one in watched]
        outcome = outcome_of(lambda: self._operator(grads, mask, *self._saved))
        self._tally.calls += 1
        if before != [one._version for one in watched]:
            self._report("operator", "an argument", "it was written to")
        return outcome

    def _compare(
        self,
        column: Column,
        compared: str,
        described: str,
        expected: Outcome,
        actual: Outcome,
        *,
        history: bool = False,
    ) -> None:
        self._tally.comparisons[column] += 1
        if expected.has_gradient and actual.has_gradient:
            self.columns.add(column)
        what = difference(as_operators_say(self.name, expected), actual, history=history)
        if what:
            self._report(compared, described, what)

    def _report(self, compared: str, described: str, what: str) -> None:
        self.disagreements.append(Disagreement(self.name, compared, described, what))


def _requiring_grad(tensor: torch.Tensor) -> torch.Tensor:
    can = tensor.is_floating_point() or tensor.is_complex()
    return tensor.detach().requires_grad_() if can else tensor


_NUMBERS = (0, 1, 1.0, True, -1.0, 2, 0.5, math.inf, math.nan)
_COMPLEX_NUMBERS = (*_NUMBERS, 0j, 1 + 0j, complex(1, -0.0), 1j, complex(math.inf, 0))

_REQUIRES_GRAD: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "saved values detached": lambda tensor: tensor.detach(),
    "saved values requiring grad": _requiring_grad,
}


def _changed(value: object, change: Callable[[torch.Tensor], torch.Tensor]) -> object:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list):
        return [change(one) if isinstance(one, torch.Tensor) else one for one in value]
    return value


def _flags(flags: Sequence[bool]) -> str:
    return "".join("1" if flag else "0" for flag in flags)


def _tensors(values: Sequence[object]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list):
            yield from (one for one in value if isinstance(one, torch.Tensor))
