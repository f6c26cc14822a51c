"""Every case, in every way, against eager: results to the bit, warnings, errors word for word, number of captures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.isolation import run_case
from tests.cases.observation import difference
from tests.cases.registry import Case, all_cases
from tests.cases.ways import CAPTURING_WAYS, Outcome, Way

_CASES = all_cases()

_cases = pytest.mark.parametrize(
    "case",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.needs_extension else [])
        for one in _CASES.values()
    ],
)

Run = Callable[[Case, Way], Outcome]


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a case, with the extension where it needs that."""

    def run_with_extension(case: Case, way: Way) -> Outcome:
        library: Path | None = request.getfixturevalue("extension") if case.needs_extension else None
        return run_case(case.name, way, extension=library)

    return run_with_extension


@pytest.fixture(scope="module")
def references() -> dict[str, Outcome]:
    """What eager gave, by the name of the case, so that it is asked once."""
    return {}


@pytest.fixture
def reference(case: Case, run: Run, references: dict[str, Outcome]) -> Outcome:
    """What eager gives."""
    if case.name not in references:
        references[case.name] = run(case, Way.EAGER)
    outcome = references[case.name]
    assert not outcome.raised, outcome.raised
    assert outcome.results, "a case must see something"
    return outcome


@pytest.mark.parametrize("way", CAPTURING_WAYS, ids=lambda way: way.value)
@_cases
def test_same_as_eager(
    case: Case, way: Way, reference: Outcome, run: Run, record_property: Callable[[str, object], None]
) -> None:
    actual = run(case, way)
    record_property("captures", actual.captures)
    record_property("replays", actual.replays)
    record_property("fallbacks", dict(actual.fallback_reasons or {}))
    assert not actual.raised, actual.raised
    found = difference(reference.results, actual.results) or difference(
        reference.warned, actual.warned, "warnings"
    )
    if case.differs is not None:
        assert found, f"now as eager; it was not, because {case.differs}"
        pytest.xfail(case.differs)
    if found:
        again = difference(reference.results, run(case, Way.EAGER).results)
        pytest.fail(f"eager disagrees with itself: {again}" if again else found, pytrace=False)
    if case.max_captures is not None:
        assert actual.captures <= case.max_captures, actual.recapture_reasons
    seen = actual.captures + actual.replays + actual.fallbacks
    assert seen > 0, "no backward was captured, replayed or left to the engine"
