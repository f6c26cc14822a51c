"""Notes what a torch was compiled from: ``python tools/record_formulas.py [FOLDER]``.

FOLDER holds the packages ``torch`` and ``torchgen`` as a wheel brings them (default: the installed ones). Run it once
for each release that the generator learns to read, before anybody edits its derivatives.
"""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    # Run as a script, the first entry is this folder; the package `codegen` starts at the checkout.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from codegen.check import check_entries
from codegen.check.compiled import digests
from codegen.parse.report import Report
from codegen.parse.yaml_source import parse_entries
from codegen.parse.yaml_tree import read_source
from codegen.torch_install.compiled_formulas import FOLDER, is_edited
from codegen.torch_install.locate import TorchInstall, TorchNotFoundError, locate_torch
from codegen.torch_install.operators import load_operators
from codegen.torch_install.vocabulary import load_vocabulary


def record(install: TorchInstall) -> list[str]:
    """The digests of everything in the derivatives of a torch, in order."""
    report = Report()
    operators = load_operators(install)
    source = read_source(install.derivatives_yaml, install.derivatives_yaml.name, report)
    entries = () if source is None else parse_entries(source, report)
    judged = check_entries(entries, operators, load_vocabulary(install, operators), report)
    if report.has_errors:
        raise SystemExit(report.render())
    return sorted(set(digests(judged)))


def main(arguments: list[str]) -> int:
    try:
        install = locate_torch(Path(arguments[0]) if arguments else None)
    except TorchNotFoundError as error:
        raise SystemExit(f"tools/record_formulas.py: {error}") from error
    if is_edited(install):
        raise SystemExit(f"tools/record_formulas.py: {install.derivatives_yaml} was edited; restore it first")
    FOLDER.mkdir(exist_ok=True)
    target = FOLDER / f"{install.version}.json"
    target.write_text(json.dumps(record(install), indent=0) + "\n", encoding="utf-8")
    print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
