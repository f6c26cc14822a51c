"""``python -m backbind.codegen check FILE.yaml``: judge derivatives without generating anything."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .check import check_compiled, check_entries
from .command_line import run_command
from .parse.report import InternalError, Report, escaped
from .parse.yaml_source import parse_entries
from .parse.yaml_tree import read_source
from .torch_install.compiled_formulas import load_compiled_formulas
from .torch_install.locate import TorchNotFoundError, locate_torch
from .torch_install.operators import BrokenInstallError, load_operators, read_operators
from .torch_install.vocabulary import load_vocabulary
from .torch_library import find_link_facts

CLEAN = 0
BAD_INPUT = 2
OUR_BUG = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the result is the exit code."""
    options = _parser().parse_args(arguments)
    report = Report()
    try:
        _check(options, report)
    except (BrokenInstallError, TorchNotFoundError) as error:
        print(f"error: {escaped(str(error))}", file=sys.stderr)
        return BAD_INPUT
    except InternalError as bug:
        print("\n".join(filter(None, (report.render(), str(bug)))), file=sys.stderr)
        return OUR_BUG
    if options.quiet:
        report.drop_notices()
    print(report.render() or f"{escaped(options.file)}: no errors\n", end="")
    return BAD_INPUT if report.has_errors else CLEAN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m backbind.codegen", description="Work with derivatives in YAML."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser(
        "check",
        help="judge a derivatives file and list every mistake with its place",
        description="Judge a file in the dialect of derivatives.yaml. Exit codes: 0 clean, 2 with errors.",
    )
    check.add_argument("file", metavar="FILE.yaml", help="the derivatives to judge")
    check.add_argument(
        "--native",
        metavar="FILE",
        action="append",
        default=[],
        help="schemas of further operators, in the dialect of native_functions.yaml; may be repeated",
    )
    check.add_argument(
        "--header",
        metavar="FILE.h",
        action="append",
        default=[],
        help="a C++ header that declares further functions for formulas; may be repeated",
    )
    check.add_argument(
        "--torch", metavar="FOLDER", type=Path, help="the folder that holds torch and torchgen"
    )
    check.add_argument("--quiet", action="store_true", help="print errors only, no notices")
    return parser


def _check(options: argparse.Namespace, report: Report) -> None:
    install = locate_torch(options.torch)
    operators = load_operators(install)
    vocabulary = load_vocabulary(install, operators)
    for name in options.native:
        source = read_source(Path(name), name, report)
        if source is not None:
            operators = operators.with_more(read_operators(source, report))
            vocabulary = vocabulary.with_operators(operators)
    for name in options.header:
        source = read_source(Path(name), name, report)
        if source is not None:
            vocabulary = vocabulary.with_header(source.text)
    source = read_source(Path(options.file), options.file, report)
    if source is not None:
        judged = check_entries(parse_entries(source, report), operators, vocabulary, report)
        compiled = load_compiled_formulas(install)
        if compiled is not None:
            check_compiled(judged, operators, compiled, lambda: find_link_facts(install, vocabulary), report)


if __name__ == "__main__":
    sys.exit(run_command(main))
