"""What tools/regen.py prints, for people and for machines."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from codegen.output import Change, Kind, short_diff
from codegen.parse.report import escaped
from tools.regen_support.options import Action, Options
from tools.regen_support.outcome import NO_LIBCLANG, Outcome


class Progress:
    """Says what is being done, on one line of a terminal; elsewhere nothing."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty()

    def __call__(self, doing: str) -> None:
        if self._shows:
            print(f"\r\033[K{doing} ...", end="", file=sys.stderr, flush=True)

    def done(self) -> None:
        """Remove the line."""
        if self._shows:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def shown(path: Path) -> str:
    """A path as seen from here."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) and path != here else str(path)


def describe_changes(options: Options, outcome: Outcome, reasons: Mapping[str, Sequence[str]]) -> str:
    """What was written, would be written, or is not up to date."""
    out = f"{shown(outcome.out)}/"
    if not outcome.changes:
        return f"{out} is up to date: {len(outcome.outputs)} files for torch {outcome.torch_version}"
    headline = _headline(options.action, outcome, out)
    if options.action is Action.CHECK:
        return "\n".join(
            [headline, *_checked(outcome, reasons), f"mend it with: {options.mending_command()}"]
        )
    if len(outcome.changes) == len(outcome.outputs) and all(
        one.kind is Kind.MISSING for one in outcome.changes
    ):
        return headline
    return "\n".join([headline, *_written(outcome, reasons)])


def _checked(outcome: Outcome, reasons: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Each file that is not up to date, with its reasons and a short diff, set off by empty lines."""
    yield ""
    for change in outcome.changes:
        yield f"{change.kind.value} {change.path}"
        yield from (f"  {_because(reason)}" for reason in reasons.get(change.path, ()))
        yield short_diff(change)
        yield ""


def _written(outcome: Outcome, reasons: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A line for each file, and its reasons below it."""
    for change in outcome.changes:
        yield f"  {_VERBS[change.kind]} {change.path}"
        yield from (f"    {_because(reason)}" for reason in reasons.get(change.path, ()))


def _because(reason: str) -> str:
    return reason if reason.startswith("and ") else f"because {reason}"


_VERBS = {Kind.MISSING: "new    ", Kind.STALE: "changed", Kind.SUPERFLUOUS: "deleted"}


def _headline(action: Action, outcome: Outcome, out: str) -> str:
    if action is Action.CHECK:
        counts = Counter(change.kind.value for change in outcome.changes)
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        return f"{out} is not what the generator makes for torch {outcome.torch_version}: {listed}"
    verb = "would change" if action is Action.DRY_RUN else "changed"
    left = len(outcome.outputs) - sum(change.kind is not Kind.SUPERFLUOUS for change in outcome.changes)
    files = "1 file" if len(outcome.changes) == 1 else f"{len(outcome.changes)} files"
    return f"{verb} {files} in {out} for torch {outcome.torch_version}; {left} are as they were"


def note_on_header(outcome: Outcome) -> str | None:
    """Says that the check against the header could not be made; nothing if it was made or not asked for."""
    if not outcome.header_check.startswith(NO_LIBCLANG):
        return None
    return (
        f"note: the model was not held against the installed header ({outcome.header_check}); "
        "'pip install libclang' makes that possible, --no-header-check silences this"
    )


def changes_as_data(
    options: Options, outcome: Outcome, reasons: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """What `describe_changes` says, for machines."""
    return {
        "action": options.action.value,
        "torch": outcome.torch_version,
        "out": str(outcome.out),
        "files": len(outcome.outputs),
        "header_check": outcome.header_check,
        "changes": [_change_as_data(change, options, reasons) for change in outcome.changes],
        **({"mend": options.mending_command()} if options.action is Action.CHECK and outcome.changes else {}),
    }


def _change_as_data(change: Change, options: Options, reasons: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    data: dict[str, Any] = {"path": change.path, "kind": change.kind.value}
    if options.explain:
        data["reasons"] = list(reasons.get(change.path, ()))
    if options.action is Action.CHECK:
        data["diff"] = short_diff(change)
    return data


def print_text(text: str, file: TextIO | None = None) -> None:
    """Print lines in which nothing that was read, such as a formula, can do anything to a terminal."""
    print("\n".join(map(escaped, text.split("\n"))), file=file)


def print_json(data: object) -> None:
    print(json.dumps(data, indent=2))
