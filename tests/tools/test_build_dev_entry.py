"""The shell entry ./dev: which checkout it works on, what it says on machines that lack something, and which
environments it makes, changes and leaves alone.
"""

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


# A Python that makes environments: each holds a Python that notes how it is called, and installs nothing.
MAKER = """#!/bin/sh
case "$1 $2" in
'-m venv')
    echo "venv $3" >>'{log}'
    mkdir -p "$3/bin"
    printf '#!/bin/sh\\necho "$*" >>"{log}"\\n' >"$3/bin/python"
    chmod +x "$3/bin/python"
    ;;
*importlib.metadata*) {torch} ;;
--version*) echo 'Python 3.x' ;;
*version_info*print*) echo 3.x ;;
esac
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
        self.log = folder / "log"
        for name in ("sh", "dirname", "cat", "chmod", "cksum", "mkdir", "readlink", "rm", "sed"):
            found = shutil.which(name)
            assert found is not None
            (self.programs / name).symlink_to(found)

    def add(self, name: str, text: str = "#!/bin/sh\n") -> None:
        program = self.programs / name
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)

    def add_python(self, name: str, *cases: str) -> None:
        self.add(name, PYTHON.format(cases="\n".join(cases), python=sys.executable))

    def add_maker(self, torch: str = ":") -> None:
        """A Python that seems to make environments, and a compiler; ``torch`` says what is found of torch."""
        self.add("g++")
        self.add("python3", MAKER.format(log=self.log, torch=torch))

    def calls(self) -> list[str]:
        """What was asked of Python since the last time, in words that tell one kind of call from another."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line for line in lines if line.startswith(("venv", "-m pip install"))]

    @property
    def environment(self) -> Path:
        return self.checkout / ".venv"

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run_by(self.checkout / "dev", *arguments, **variables)

    def run_by(self, entry: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(entry), *arguments],
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


@pytest.mark.parametrize("arguments", [["--fxi"], ["csrc"], ["--fix", "csrc"], ["--fix", "--fix"], [""]])
def test_lint_refuses_what_it_does_not_know(machine: Machine, arguments: list[str]) -> None:
    assert machine.complaint("lint", *arguments) == (
        f"dev: ./dev lint takes no argument but --fix; given: {' '.join(arguments)}\n"
    )


NO_PYTHON = (
    "dev: no Python 3.11 to 3.14 found. Debian 12, Ubuntu 24.04 or newer: "
    "apt-get install python3 python3-venv python3-dev g++\n"
)
UPLINK = Path("..", "check out", "dev")


@pytest.mark.parametrize(
    "links", [[UPLINK], [UPLINK, Path("first")], [UPLINK, Path("..", "else where", "first")]]
)
def test_symbolic_link_to_the_entry_works_on_the_checkout(
    machine: Machine, tmp_path: Path, links: list[Path]
) -> None:
    elsewhere = tmp_path / "else where"
    theirs = elsewhere / ".venv" / "bin" / "python"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs", encoding="utf-8")
    for name, target in zip(("first", "second"), links, strict=False):
        (elsewhere / name).symlink_to(target)
    # Reached through a folder that is a link, too: '..' in a link means the folder above the real one.
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "folder").symlink_to(elsewhere)
    entry = tmp_path / "deep" / "folder" / ("first" if len(links) == 1 else "second")
    finished = machine.run_by(entry, "build")
    assert (finished.returncode, finished.stdout, finished.stderr) == (1, "", NO_PYTHON)
    assert theirs.read_text(encoding="utf-8") == "theirs"
    assert not machine.environment.exists()


def their_environment(path: Path, kind: str) -> None:
    """An environment that ./dev did not make, or what else may lie in its place."""
    if kind == "file":
        path.write_text("theirs", encoding="utf-8")
        return
    place = path if kind in ("folder", "empty folder") else path.with_name("theirs")
    if kind != "dangling link":
        place.mkdir()
    if kind in ("folder", "link"):
        (place / "bin").mkdir()
        (place / "bin" / "python").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (place / "bin" / "python").chmod(0o755)
    if place != path:
        path.symlink_to(place)


def contents(folder: Path) -> dict[str, str]:
    """Everything below a folder: the target of a link, the text of a file."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_text(encoding="utf-8")
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("kind", ["folder", "empty folder", "link", "dangling link", "file"])
@pytest.mark.parametrize("job", ["demo", "test", "regen", "build", "bench", "lint"])
def test_environment_of_another_maker_is_left_alone(machine: Machine, kind: str, job: str) -> None:
    machine.add_maker()
    their_environment(machine.environment, kind)
    before = contents(machine.checkout)
    finished = machine.run(job)
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr == (
        f"dev: {machine.environment} was not made by ./dev, which changes no environment but its own. Move it away "
        "or remove it, and run ./dev again; to use the torch in it, set PYTHON to its interpreter.\n"
    )
    assert contents(machine.checkout) == before
    assert machine.calls() == []


MAKES = "dev: making .venv with Python 3.x\n"
INSTALLS = "dev: installing requirements/dev.txt (a minute or two, once)\n"
PIP = "-m pip install --quiet --quiet --disable-pip-version-check --no-input --no-compile"


def test_environment_is_made_once_and_brought_up_to_date(machine: Machine) -> None:
    machine.add_maker()
    assert machine.run("regen").stderr == MAKES + INSTALLS
    install = f"{PIP} --requirement {machine.checkout}/requirements/dev.txt"
    assert machine.calls() == [f"venv {machine.environment}", install]
    assert machine.run("regen").stderr == ""
    assert machine.calls() == []
    with (machine.checkout / "requirements" / "dev.txt").open("a") as requirements:
        requirements.write("# more\n")
    assert machine.run("regen").stderr == INSTALLS
    assert machine.calls() == [install]


def test_environment_of_a_checkout_that_moved_is_brought_up_to_date(machine: Machine, tmp_path: Path) -> None:
    machine.add_maker()
    machine.run("regen")
    machine.calls()
    machine.checkout = machine.checkout.rename(tmp_path / "moved")
    assert machine.run("regen").stderr == INSTALLS
    assert machine.calls() == [f"{PIP} --requirement {machine.checkout}/requirements/dev.txt"]


def test_environment_that_was_not_finished_is_made_again_and_keeps_what_is_not_part_of_it(
    machine: Machine,
) -> None:
    machine.add_maker()
    machine.run("regen")
    machine.calls()
    (machine.environment / "bin" / "python").unlink()
    (machine.environment / "notes").write_text("kept", encoding="utf-8")
    assert machine.run("regen").stderr == MAKES + INSTALLS
    assert machine.calls()[0] == f"venv {machine.environment}"
    assert (machine.environment / "notes").read_text(encoding="utf-8") == "kept"


def test_torch_of_the_environment_that_python_names_is_used(machine: Machine) -> None:
    machine.add_maker(torch="echo '/their site'")
    said = f"{MAKES}{INSTALLS}dev: using the torch in /their site\n"
    assert machine.run("regen", PYTHON="python3").stderr == said
    listed = machine.environment / "backbind-without-torch.txt"
    calls = [f"venv {machine.environment}", f"{PIP} --no-deps --requirement {listed}"]
    assert machine.calls() == calls
    names = [line.partition("=")[0] for line in listed.read_text(encoding="utf-8").splitlines()]
    assert "torch" not in names
    assert {"jinja2", "ninja", "numpy", "pytest", "ruff"} <= set(names)
    assert machine.run("regen").stderr == ""
    # The choice outlives a change of the requirements.
    with (machine.checkout / "requirements" / "dev.txt").open("a") as requirements:
        requirements.write("# more\n")
    machine.calls()
    assert machine.run("regen").stderr == said
    assert machine.calls() == calls


@pytest.mark.parametrize(
    ("version", "found"), [("2.13.0", True), ("2.13.0+cpu", True), ("2.13.01", False), ("2.14.1", False)]
)
def test_torch_of_another_release_is_not_used(
    machine: Machine, tmp_path: Path, version: str, found: bool
) -> None:
    site = tmp_path / "site"
    (site / f"torch-{version}.dist-info").mkdir(parents=True)
    (site / f"torch-{version}.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n", encoding="utf-8"
    )
    machine.add_maker(torch=f"shift; PYTHONPATH='{site}' exec '{sys.executable}' -S -c \"$@\"")
    said = machine.run("regen", PYTHON="python3").stderr
    assert said == MAKES + INSTALLS + (f"dev: using the torch in {site}\n" if found else "")
