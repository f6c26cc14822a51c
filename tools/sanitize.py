"""Runs the tests of capture with a sanitized extension: ``python tools/sanitize.py address|thread [pytest arguments]``.

Builds the extension with the sanitizer, in a package of its own, and fails where a test fails or where any process of
the run, children whose end nobody looks at among them, has left a report.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    # Run as a script, the first entry is this folder; the packages `tools` and `codegen` start at the
    # checkout.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tools.build import build_extension
from tools.build_support.errors import BuildError
from tools.build_support.options import REPOSITORY, BuildOptions
from tools.build_support.sanitizers import SANITIZERS

TESTS = ("tests/plan", "tests/capture", "tests/replay", "tests/cases/test_cases.py", "tests/sanitizers")
"""Not tests/cases/test_harness.py, whose processes crash on purpose."""
WITHOUT_CAPTURE = ("tests/replay/programs/test_random_programs.py::test_eager_agrees_with_itself",)
"""Tests among them that run eager alone, so that nothing of what they run is instrumented."""
SUPPRESSIONS = REPOSITORY / "tests" / "sanitizers"

_OPTIONS = {
    "ASAN_OPTIONS": {
        # Python and torch free little of what they hold when a process ends. That backwards leave nothing behind is
        # shown by the tests of memory and of lifetimes.
        "detect_leaks": "0",
        # Tests ask torch for more memory than there is, and expect its own error.
        "allocator_may_return_null": "1",
        "detect_stack_use_after_return": "1",
        "strict_string_checks": "1",
    },
    "UBSAN_OPTIONS": {"print_stacktrace": "1"},
    "TSAN_OPTIONS": {
        "second_deadlock_stack": "1",
        "suppressions": str(SUPPRESSIONS / "thread.txt"),
    },
}
_VARIABLES = {"address": ("ASAN_OPTIONS", "UBSAN_OPTIONS"), "thread": ("TSAN_OPTIONS",)}


@dataclass(frozen=True)
class Outcome:
    """How a sanitized process ended.

    Attributes:
        status: its exit status.
        reports: what the sanitizer said in it and in its children, one text for each process.
    """

    status: int
    reports: tuple[str, ...]

    @property
    def clean(self) -> bool:
        return self.status == 0 and not self.reports


def run_sanitized(
    sanitizer: str,
    command: Sequence[str],
    compiler: Sequence[str],
    variables: Mapping[str, str],
    python_path: Sequence[Path] = (),
) -> Outcome:
    """Run ``command`` with the sanitizer's runtime loaded, and gather the reports.

    Args:
        sanitizer: a key of SANITIZERS.
        command: what to run.
        compiler: the C++ compiler's command; the runtime must be the one of the compiler that built the extension.
        variables: the environment variables to begin with.
        python_path: where Python looks first.
    """
    with tempfile.TemporaryDirectory(prefix="sanitizer-") as folder:
        environment = {
            **variables,
            # The C++ library too, because a sanitizer looks up the functions that it wraps only once, and Python
            # itself is not linked to it.
            "LD_PRELOAD": " ".join(
                _library(compiler, name) for name in (SANITIZERS[sanitizer].library, "libstdc++.so")
            ),
            "PYTHONPATH": os.pathsep.join(map(str, python_path)),
            # Each object an allocation of its own, so that its bounds and its end are seen.
            "PYTHONMALLOC": "malloc",
        }
        for name in _VARIABLES[sanitizer]:
            # Files, because the standard error of a child may be read by a test, or by nobody.
            options = {**_OPTIONS[name], "log_path": str(Path(folder, "report"))}
            environment[name] = ":".join(
                [*(f"{key}='{value}'" for key, value in options.items()), variables.get(name, "")]
            )
        status = subprocess.run(command, env=environment, check=False).returncode
        reports = [path.read_text(errors="replace") for path in sorted(Path(folder).iterdir())]
    return Outcome(status, tuple(report for report in reports if report))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./dev test --sanitize",
        description=f"Run {', '.join(TESTS)} with a sanitized extension, without the tests marked slow.",
    )
    parser.add_argument("sanitizer", choices=SANITIZERS)
    parser.add_argument("pytest", nargs=argparse.REMAINDER, help="arguments of pytest")
    parsed = parser.parse_args(arguments)
    try:
        build = build_extension(BuildOptions(sanitize=parsed.sanitizer))
    except BuildError as error:
        print(f"tools/sanitize.py: {error}", file=sys.stderr)
        return 1
    package = build.package.parent
    pytest = [sys.executable, "-m", "pytest"]
    # In place of the settings of pyproject.toml, which would find the ordinary extension.
    pytest += ["-o", f"pythonpath=. '{package}'", "-o", f"testpaths={' '.join(TESTS)}"]
    pytest += ["-p", "tests.sanitizers.extension_in_use", "--extension", str(build.placed_extension)]
    pytest += [word for test in WITHOUT_CAPTURE for word in ("--deselect", test)]
    outcome = run_sanitized(
        parsed.sanitizer,
        [*pytest, "-m", "not slow", *parsed.pytest],
        build.environment.cxx,
        os.environ,
        [package],
    )
    for report in outcome.reports:
        print(report, file=sys.stderr)
    print(f"tools/sanitize.py: {parsed.sanitizer}: {len(outcome.reports)} processes with reports")
    return 0 if outcome.clean else outcome.status or 1


def _library(compiler: Sequence[str], name: str) -> str:
    found = subprocess.run(
        [*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(found).is_absolute():  # the compiler repeats a name that it does not find
        raise BuildError(
            f"the C++ compiler {' '.join(compiler)!r} has no {name}. Install it (Debian, Ubuntu: a package of g++), "
            "or name a compiler that has it in the environment variable CXX."
        )
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
