"""The shell entry ./dev on machines that lack something: what it says, and that it does nothing else."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

# Answers as a Python of another version would, or as one without a module.
PYTHON = """#!/bin/sh
case "$2" in
{cases}
esac
exec '{python}' "$@"
"""


class Machine:
    """A folder of programs that serves as PATH, and a copy of the entry to run on it."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.checkout = folder / "check out"
        self.checkout.mkdir()
        shutil.copy2(REPOSITORY / "dev", self.checkout)
        shutil.copytree(REPOSITORY / "requirements", self.checkout / "requirements")
        for name in ("sh", "dirname", "cat", "cksum"):
            found = shutil.which(name)
            assert found is not None
            (self.programs / name).symlink_to(found)

    def add(self, name: str, text: str = "#!/bin/sh\n") -> None:
        program = self.programs / name
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)

    def add_python(self, name: str, *cases: str) -> None:
        self.add(name, PYTHON.format(cases="\n".join(cases), python=sys.executable))

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.checkout / "dev"), *arguments],
            cwd="/",
            env={"PATH": str(self.programs), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def complaint(self, *arguments: str, **variables: str) -> str:
        finished = self.run(*arguments, **variables)
        assert finished.returncode == 1
        assert finished.stdout == ""
        assert not (self.checkout / ".venv").exists()
        return finished.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


OLD = "*version_info*) exit 1 ;;"
NO_VENV = "*ensurepip*) exit 1 ;;"
NO_HEADERS = "*Python.h*) exit 1 ;;"


@pytest.mark.parametrize("pythons", [[], ["python3"], ["python3", "python3.11"]])
def test_without_a_suitable_python(machine: Machine, pythons: list[str]) -> None:
    for name in pythons:
        machine.add_python(name, OLD)
    assert machine.complaint("build") == (
        "dev: no Python 3.11 to 3.14 found. Debian 12, Ubuntu 24.04 or newer: "
        "apt-get install python3 python3-venv python3-dev g++\n"
    )


def test_unsuitable_python_that_was_asked_for(machine: Machine) -> None:
    machine.add_python("python3")
    machine.add_python("python3.10", OLD)
    assert machine.complaint("build", PYTHON="python3.10") == (
        "dev: PYTHON is 'python3.10', which is not a Python 3.11 to 3.14.\n"
    )


@pytest.mark.parametrize(
    ("lacks", "compiler", "packages"),
    [
        ([NO_VENV], "g++", f"python{VERSION}-venv"),
        ([NO_HEADERS], "g++", f"python{VERSION}-dev"),
        ([], None, "g++"),
        ([NO_VENV, NO_HEADERS], None, f"python{VERSION}-venv python{VERSION}-dev g++"),
    ],
)
def test_everything_that_is_missing_is_named_at_once(
    machine: Machine, lacks: list[str], compiler: str | None, packages: str
) -> None:
    machine.add_python("python3", *lacks)
    if compiler is not None:
        machine.add(compiler)
    assert machine.complaint("demo") == (
        f"dev: this machine lacks what the build needs. Debian, Ubuntu: apt-get install {packages}\n"
    )


def test_compiler_of_the_environment_counts(machine: Machine) -> None:
    machine.add_python("python3", NO_VENV)
    machine.add("clang++-19")
    assert machine.complaint("demo", CXX="clang++-19 -v").endswith(f"apt-get install python{VERSION}-venv\n")


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"], ["-h"]])
def test_help_needs_nothing(machine: Machine, arguments: list[str]) -> None:
    finished = machine.run(*arguments)
    assert (finished.returncode, finished.stderr) == (0, "")
    jobs = [
        line.split()[0] for line in finished.stdout.splitlines() if line.startswith("  ") and line[2] != " "
    ]
    assert jobs == ["demo", "test", "regen", "build", "bench", "lint", "help"]


def test_unknown_job(machine: Machine) -> None:
    message = machine.complaint("tset")
    assert message.splitlines()[0] == "usage: ./dev JOB [arguments]"
    assert message.splitlines()[-1] == "dev: there is no job 'tset'"
