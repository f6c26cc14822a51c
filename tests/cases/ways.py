"""The ways in which a case runs: as eager does, with each backward captured, with capture on for the process."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

import backbind
import torch
from backbind._capture import Session

from tests.cases.observation import Observation, observed
from tests.cases.registry import Case, T


class Way(Enum):
    """How backwards are run."""

    EAGER = "eager"
    CAPTURED = "captured"
    """Each backward inside ``with backbind.capture()``."""
    ENABLED = "enabled"
    """The whole case, forwards too, after ``backbind.enable()``."""
    GRAPH = "graph"
    """Each backward inside ``with backbind.capture(backend="graph")``."""
    AOT_EAGER = "aot_eager"
    """The same with a graph that AOTAutograd has compiled."""


CAPTURING_WAYS = (Way.CAPTURED, Way.ENABLED, Way.GRAPH)

_BACKENDS = {Way.CAPTURED: "native", Way.GRAPH: "graph", Way.AOT_EAGER: "aot_eager"}
"""The ways that capture each backward by itself, and what runs it."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    results: Observation
    """What it returned; None where it raised."""
    raised: str
    """The traceback of an error that the case did not expect, or an empty text."""
    warned: list[tuple[str, str]]
    """The category and text of each warning, in order."""
    captures: int = 0
    replays: int = 0
    fallback_reasons: Mapping[str, int] | None = None
    recapture_reasons: Mapping[str, int] | None = None

    @property
    def fallbacks(self) -> int:
        return sum((self.fallback_reasons or {}).values())


def run_here(case: Case, way: Way) -> Outcome:
    """Run a case in this process, whose state it may change."""
    sessions: list[Session] = []

    def as_it_is(action: Callable[[], T], /) -> T:
        return action()

    def captured(action: Callable[[], T], /) -> T:
        with backbind.capture(backend=_BACKENDS[way]) as session:
            sessions.append(session)
            return action()

    if way is Way.ENABLED:
        sessions.append(backbind.enable())
    torch.manual_seed(0)
    results: Observation = None
    raised = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            results = observed(case.program(captured if way in _BACKENDS else as_it_is))
        except Exception:
            raised = traceback.format_exc()
    stats = [session.stats for session in sessions]
    return Outcome(
        results=results,
        raised=raised,
        warned=[(one.category.__name__, str(one.message)) for one in caught],
        captures=sum(one.captures for one in stats),
        replays=sum(one.replays for one in stats),
        fallback_reasons=_added([one.fallback_reasons for one in stats]),
        recapture_reasons=_added([one.recapture_reasons for one in stats]),
    )


def _added(counts: list[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for reason, count in one.items():
            total[reason] = total.get(reason, 0) + count
    return total
