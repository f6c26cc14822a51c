"""The command line of tools/regen.py."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""

_EXIT_CODES = "Exit codes: 0 clean or written, 1 --check found something, 2 bad input, 3 a defect of ours."


class Action(Enum):
    """The one thing that a run does."""

    WRITE = "write"
    CHECK = "check"
    DRY_RUN = "dry-run"
    ONLY = "only"
    DIFF = "diff"
    LIST_OUTPUTS = "list-outputs"


@dataclass(frozen=True)
class Options:
    """One run, as asked for."""

    action: Action = Action.WRITE
    out: Path = ROOT / "generated"
    """The output folder."""
    torch_root: Path | None = None
    """The folder that holds ``torch`` and ``torchgen``; None: as Python would import them."""
    delegate_only: bool = False
    """Whether no inline code is made."""
    line_directives: bool = True
    header_check: bool = True
    """Whether the model is held against the installed header."""
    node: str = ""
    """The node of ``--only``."""
    other: Path | None = None
    """The other torch of ``--diff``."""
    explain: bool = False
    stats: bool = False
    as_json: bool = False
    depfile: Path | None = None
    cache: Path | None = ROOT / ".cache" / "regen"
    """Where facts are kept between runs; None: nowhere."""

    def mending_command(self) -> str:
        """The command that brings the output folder up to date under the same settings."""
        words = [] if self.out == Options.out else ["--out", str(self.out)]
        words += [] if self.torch_root is None else ["--torch-root", str(self.torch_root)]
        words += ["--mode", "delegate"] if self.delegate_only else []
        words += [] if self.line_directives else ["--no-line-directives"]
        return shlex.join(["./dev", "regen", *words])


def parse_options(arguments: Sequence[str]) -> Options:
    """Read the command line; exits with code 2 where it is wrong."""
    parser = _parser()
    given = parser.parse_args(arguments)
    action = Action.WRITE
    for candidate in (Action.CHECK, Action.DRY_RUN, Action.ONLY, Action.DIFF, Action.LIST_OUTPUTS):
        if getattr(given, candidate.value.replace("-", "_")):
            action = candidate
    if given.depfile is not None and action is not Action.WRITE:
        parser.error(
            "--depfile describes what was written; it does not go with an action that writes nothing"
        )
    return Options(
        action=action,
        out=given.out.absolute(),
        torch_root=given.torch_root,
        delegate_only=given.mode == "delegate",
        line_directives=given.line_directives,
        header_check=given.header_check,
        node=given.only or "",
        other=given.diff,
        explain=given.explain,
        stats=given.stats,
        as_json=given.json,
        depfile=given.depfile,
        cache=None if given.no_cache else given.cache,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="regen.py",
        description="Write the generated files for an installed torch: those that changed, and no other.",
        epilog=_EXIT_CODES,
    )
    actions = parser.add_argument_group("instead of writing").add_mutually_exclusive_group()
    actions.add_argument(
        "--check", action="store_true", help="list files that are not up to date, with short diffs"
    )
    actions.add_argument("--dry-run", action="store_true", help="say what would be written")
    actions.add_argument("--only", metavar="NODE", help="print what is generated for one node")
    actions.add_argument(
        "--diff",
        metavar="OTHER",
        type=Path,
        help="say what changes in the derivatives from this torch to OTHER, a wheel or an unpacked one",
    )
    actions.add_argument(
        "--list-outputs", action="store_true", help="print the path of every file that a run makes"
    )
    more = parser.add_argument_group("more to print")
    more.add_argument("--explain", action="store_true", help="why each file is rewritten")
    more.add_argument("--stats", action="store_true", help="phase times, nodes by mode and reason, bytes")
    more.add_argument("--json", action="store_true", help="print for machines")
    settings = parser.add_argument_group("settings")
    settings.add_argument(
        "--out", metavar="DIR", type=Path, default=Options.out, help="output folder (default: generated/)"
    )
    settings.add_argument(
        "--torch-root",
        metavar="DIR",
        type=Path,
        help="folder that holds torch and torchgen (default: the installed ones)",
    )
    settings.add_argument(
        "--mode",
        choices=("auto", "inline", "delegate"),
        default="auto",
        help="delegate: no inline code at all; auto and inline: inline code wherever it links",
    )
    settings.add_argument(
        "--no-line-directives",
        dest="line_directives",
        action="store_false",
        help="leave out #line, for reading the output",
    )
    settings.add_argument(
        "--no-header-check",
        dest="header_check",
        action="store_false",
        help="do not hold the model against the installed header (libclang)",
    )
    settings.add_argument(
        "--depfile", metavar="FILE", type=Path, help="write the inputs of manifest.json as a rule of make"
    )
    settings.add_argument(
        "--cache",
        metavar="DIR",
        type=Path,
        default=Options.cache,
        help="where facts of a torch are kept between runs",
    )
    settings.add_argument("--no-cache", action="store_true", help="keep and use nothing from other runs")
    return parser
