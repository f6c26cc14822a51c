"""How every command line ends where its output is not wanted any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from codegen.command_line import run_command
def main():
{body}
sys.exit(run_command(main))
"""


def command(body: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM.format(root=str(ROOT), body=body)]


def run(body: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(body), capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("    print('line')\n    return 0", id="noticed_at_the_end"),
        pytest.param("    for i in range(100000): print(i)\n    return 0", id="noticed_while_printing"),
    ],
)
def test_closed_output_ends_it_in_silence(body: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        finished = subprocess.run(
            command(body), stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
    assert (finished.returncode, finished.stderr) == (141, "")


@pytest.mark.parametrize("code", [0, 1, 2])
def test_exit_code_is_the_command_s_own(code: int) -> None:
    assert run(f"    return {code}").returncode == code


def test_interrupt_is_no_traceback() -> None:
    finished = run("    print('begun', flush=True)\n    raise KeyboardInterrupt")
    assert (finished.returncode, finished.stdout, finished.stderr) == (130, "begun\n", "")


def test_character_that_the_output_lacks_is_escaped() -> None:
    finished = subprocess.run(
        command("    print('\\u00e4')\n    return 0"),
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "\\xe4\n", "")
