"""What type checkers make of the package: mypy on examples of right and wrong calls, stubtest on the stubs."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.ops.typed_examples import right_calls, wrong_calls
from tests.processes import run_python

EXAMPLES = Path(__file__).parent / "typed_examples"
_SILENCED = re.compile(r"  # type: ignore\[([a-z-]+)\]")

Finding = tuple[int, str]
"""Line and error code."""


def run_tool(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run mypy or one of its tools, whose status is 1 where it found something."""
    environment = {"PYTHONPATH": str(REPOSITORY / "runtime")}
    return run_python("-m", module, *arguments, cwd=REPOSITORY, env=environment, timeout=600, statuses=(0, 1))


def errors_found_by_mypy(*files: Path) -> dict[str, list[Finding]]:
    """The errors in each file, under the project's own settings, which are strict."""
    result = run_tool("mypy", "--strict", "--output=json", *map(str, files))
    assert not result.stderr, result.stderr
    found: dict[str, list[Finding]] = {file.name: [] for file in files}
    for line in result.stdout.splitlines():
        message = json.loads(line)
        if message["severity"] == "error":
            finding = message["line"], message["code"]
            of_file = found[Path(message["file"]).name]
            if finding not in of_file:  # two arguments of one call may be wrong
                of_file.append(finding)
    return found


def without_silencing(text: str) -> tuple[str, list[Finding]]:
    """A file with its ``type: ignore`` comments taken away, and what they were for."""
    expected = [
        (number, code)
        for number, line in enumerate(text.splitlines(), start=1)
        for code in _SILENCED.findall(line)
    ]
    return _SILENCED.sub("", text), expected


@pytest.mark.slow
def test_mypy_accepts_right_calls_and_refuses_each_wrong_one(tmp_path: Path) -> None:
    text, expected = without_silencing((EXAMPLES / "wrong_calls.py").read_text())
    wrong = tmp_path / "wrong_calls.py"
    wrong.write_text(text)
    assert len(expected) == len(wrong_calls.FUNCTIONS)
    found = errors_found_by_mypy(EXAMPLES / "right_calls.py", wrong)
    assert found == {"right_calls.py": [], "wrong_calls.py": expected}


@pytest.mark.parametrize("function", right_calls.FUNCTIONS)
def test_right_calls_run(function: Callable[[], None]) -> None:
    function()


@pytest.mark.parametrize("function", wrong_calls.FUNCTIONS)
def test_wrong_calls_raise(function: Callable[[], None]) -> None:
    """What the checker refuses is refused at run time, too, by an error about the call."""
    with pytest.raises((TypeError, AttributeError, KeyError)):
        function()


@pytest.mark.slow
def test_stubtest_finds_stubs_and_package_in_agreement() -> None:
    """Every name of the package, operators included, is in the stubs as it is at run time; and the reverse."""
    allowlist = Path(__file__).parent / "stubtest_allowlist.txt"
    result = run_tool(
        "mypy.stubtest",
        "backbind",
        "--concise",
        "--mypy-config-file=pyproject.toml",
        f"--allowlist={allowlist}",
    )
    assert (result.returncode, result.stdout) == (0, ""), result.stdout + result.stderr
