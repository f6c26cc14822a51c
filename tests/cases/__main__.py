"""Prints what becomes of each case: ``python -m tests.cases [NAME ...]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.cases.extension import build_extension
from tests.cases.isolation import run_case
from tests.cases.observation import difference
from tests.cases.registry import Case, all_cases
from tests.cases.ways import CAPTURING_WAYS, Outcome, Way
from tests.processes import ProcessDiedError


def _judged(case: Case, expected: Outcome, actual: Outcome) -> str:
    if actual.raised:
        return f"raises {actual.raised.strip().splitlines()[-1]}"
    found = difference(expected.results, actual.results) or difference(
        expected.warned, actual.warned, "warnings"
    )
    if found:
        return f"differs: {found}"
    if case.max_captures is not None and actual.captures > case.max_captures:
        return f"{actual.captures} captures where {case.max_captures} should do"
    if actual.captures + actual.replays + actual.fallbacks == 0:
        return "no backward was seen"
    return "same"


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.cases", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases; all of them where none is named")
    arguments = parser.parse_args()
    cases = all_cases()
    unknown = [name for name in arguments.names if name not in cases]
    if unknown:
        parser.error(f"there is no case {unknown[0]}; there are {', '.join(cases)}")
    chosen = [cases[name] for name in arguments.names] or list(cases.values())
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        library = build_extension(Path(folder)) if any(case.needs_extension for case in chosen) else None
        for case in chosen:
            extension = library if case.needs_extension else None
            expected = run_case(case.name, Way.EAGER, extension=extension)
            verdicts = ["ok" if not expected.raised else f"raises {expected.raised}"]
            for way in CAPTURING_WAYS:
                try:
                    actual = run_case(case.name, way, extension=extension)
                except ProcessDiedError as error:
                    verdicts.append(f"dies: {error}")
                    continue
                numbers = (
                    f"{actual.captures} captures, {actual.replays} replays, {actual.fallbacks} fallbacks"
                )
                verdicts.append(f"{_judged(case, expected, actual)} ({numbers})")
            different += any(not verdict.startswith(("same", "ok")) for verdict in verdicts)
            print(f"{case.kind} | {case.name} | {' | '.join(verdicts)}", flush=True)
    print(f"{len(chosen)} cases, {different} of them not as in eager")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
