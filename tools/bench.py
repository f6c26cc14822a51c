"""Runs one benchmark: ``python tools/bench.py NAME [options]``, where NAME is a module of tools/benchmarks.

A benchmark is a module with a docstring whose first line says what it measures, and ``main(arguments) ->
int``.
"""

import ast
import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    # Run as a script, the first entry is this folder; packages start at the checkout and at runtime/.
    sys.path[0:1] = [str(ROOT), str(ROOT / "runtime")]

from codegen.command_line import run_command  # noqa: E402

FOLDER = ROOT / "tools" / "benchmarks"


def benchmarks() -> dict[str, str]:
    """Each benchmark's name and the first line of its docstring, read without importing anything heavy."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        if not path.name.startswith("_"):
            docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            found[path.stem] = docstring.partition("\n")[0]
    return found


def usage() -> str:
    lines = [f"  {name:<12} {description}" for name, description in benchmarks().items()]
    return "\n".join(["usage: tools/bench.py NAME [options]  (NAME --help lists its options)", "", *lines])


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    name, *rest = arguments
    if name not in benchmarks():
        print(f"tools/bench.py: there is no benchmark {name!r}\n{usage()}", file=sys.stderr)
        return 2
    status: int = importlib.import_module(f"tools.benchmarks.{name}").main(rest)
    return status


if __name__ == "__main__":
    sys.exit(run_command(lambda: main(sys.argv[1:])))
