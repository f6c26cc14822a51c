"""What a wheel contains, and that it works by itself: built, unpacked elsewhere and used from there."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools.build_support.flags import extension_file_name
from tools.build_support.torch_facts import installed_torch

REPOSITORY = Path(__file__).resolve().parent.parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]

pytestmark = pytest.mark.slow

# Run outside the checkout, with the wheel alone on the path: an operator, called with what a node saved,
# must give what the engine gives; and the generator must find its templates.
USE = """
import json, pathlib
import torch
import backbind
import backbind.codegen

x = torch.randn(5, dtype=torch.float64, requires_grad=True)
y = x.tanh()
gradient = torch.randn(5, dtype=torch.float64)
operator = backbind.ops.for_node(y.grad_fn)
ours = operator([gradient], *backbind.pack(y.grad_fn))[0]
(theirs,) = torch.autograd.grad(y, x, gradient)
print(json.dumps({
    "package": str(pathlib.Path(backbind.__file__).parent),
    "generator": str(pathlib.Path(backbind.codegen.__file__).parent),
    "operator": operator.__name__,
    "equal": torch.equal(ours, theirs),
    "nodes": len(backbind.ops),
}))
"""


# The same for capture: what was replayed equals what the engine gives.
CAPTURE = """
import importlib.metadata, json, pathlib
import torch
import backbind

layer = torch.nn.Linear(2, 1)
results = []
session = backbind.capture()
for captured in (False, True, True, True):
    layer.zero_grad()
    loss = layer(torch.ones(3, 2)).tanh().sum()
    if captured:
        with session:
            loss.backward()
    else:
        loss.backward()
    results.append(layer.weight.grad)
package = pathlib.Path(backbind.__file__).parent
print(json.dumps({
    "package": str(package),
    "equal": all(torch.equal(results[0], one) for one in results),
    "replays": session.session.stats.replays,
    "built_for": (package / "_built_for.txt").read_text().strip(),
    "requires": [one for one in importlib.metadata.requires("backbind") if one.startswith("torch")],
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        *PIP,
        "wheel",
        "--no-build-isolation",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(REPOSITORY),
    ]
    subprocess.run(command, check=True, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    subprocess.run([*PIP, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    return target


def relative_files(folder: Path, *suffixes: str) -> set[str]:
    """The files of a source folder as they should appear in the wheel."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts
    }


def test_wheel_holds_exactly_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    runtime = REPOSITORY / "runtime" / "backbind"
    links = {"codegen", "ops", "templates"}
    expected = {"backbind/" + extension_file_name(), "backbind/_built_for.txt"}
    # Folders that are links in the checkout must be real files in the wheel.
    for name, source in [
        *((link, (runtime / link).resolve()) for link in sorted(links)),
        *((path.name, path) for path in runtime.iterdir() if path.is_dir() and path.name not in links),
    ]:
        files = relative_files(source, ".py", ".pyi", ".json", ".j2", ".yaml", ".typed")
        expected |= {f"backbind/{name}/{file}" for file in files}
    expected |= {
        f"backbind/{path.name}" for path in runtime.iterdir() if path.suffix in (".py", ".pyi", ".typed")
    }
    assert packed == expected


@pytest.mark.parametrize(
    "name",
    [
        "backbind/py.typed",
        "backbind/_C.pyi",
        "backbind/codegen/parse/span.py",
        "backbind/ops/__init__.pyi",
        "backbind/ops/_areas/linear_algebra.py",
        "backbind/ops/_areas/linear_algebra.pyi",
        "backbind/templates/cpp/nodes.cpp.j2",
    ],
)
def test_each_kind_of_file_is_there(wheel: Path, name: str) -> None:
    # The list above is compared with the checkout; this one keeps an empty checkout folder from passing.
    with zipfile.ZipFile(wheel) as archive:
        assert name in archive.namelist()


def test_wheel_is_for_this_python_and_not_pure(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
        lines = archive.read(name).decode().splitlines()
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert "Root-Is-Purelib: false" in lines
    assert any(line.startswith(f"Tag: {python}-{python}-linux_") for line in lines)


def test_extension_has_no_absolute_run_path(installed: Path) -> None:
    extension = (installed / "backbind" / extension_file_name()).read_bytes()
    assert b"$ORIGIN/../torch/lib" in extension
    assert str(installed_torch().lib).encode() not in extension


def test_installed_package_works_by_itself(installed: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", USE]
    # -P and the path alone: neither the current folder nor the checkout may serve an import.
    finished = subprocess.run(
        [command[0], "-P", *command[1:]],
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    package = installed / "backbind"
    nodes = json.loads((REPOSITORY / "generated" / "manifest.json").read_text(encoding="utf-8"))["nodes"]
    assert json.loads(finished.stdout) == {
        "package": str(package),
        "generator": str(package / "codegen"),
        "operator": "TanhBackward0",
        "equal": True,
        "nodes": len(nodes),
    }


def import_error(package: Path, built_for: str, cwd: Path) -> str:
    """What importing an installed package says that was built for another torch."""
    record = package / "_built_for.txt"
    before = record.read_text(encoding="utf-8")
    record.write_text(f"{built_for}\n", encoding="utf-8")
    try:
        finished = subprocess.run(
            [sys.executable, "-P", "-c", "import backbind"],
            cwd=cwd,
            env={"PATH": "", "PYTHONPATH": str(package.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        record.write_text(before, encoding="utf-8")
    assert (finished.returncode, finished.stdout) == (1, "")
    return finished.stderr.rstrip().splitlines()[-1]


def test_wrong_torch_is_one_sentence(installed: Path, tmp_path: Path) -> None:
    release = installed_torch().release
    assert (installed / "backbind" / "_built_for.txt").read_text(encoding="utf-8") == f"{release}\n"
    assert import_error(installed / "backbind", "1.0.0", tmp_path) == (
        "backbind._version_check.WrongTorchError: "
        f"backbind was built for torch 1.0.0, but torch {release} is installed. Either put that torch back: "
        f"'{sys.executable} -m pip install torch==1.0.0', or build backbind for this one, in a folder with its "
        f"sources: '{sys.executable} -m pip install --force-reinstall --no-deps .'"
    )


def test_wheel_requires_the_torch_that_it_was_built_for(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(name).decode().splitlines()
    required = [line for line in lines if line.startswith("Requires-Dist: torch")]
    assert required == [f"Requires-Dist: torch=={installed_torch().release}"]


@pytest.fixture(scope="module")
def source_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("source")
    program = "import sys; from tools import build_backend; build_backend.build_sdist(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", program, str(folder)], cwd=REPOSITORY, check=True, capture_output=True
    )
    (packed,) = folder.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    (tree,) = (path for path in folder.iterdir() if path.is_dir())
    return tree


def fresh_environment(folder: Path) -> Path:
    """An environment of its own that has torch and what torch needs, all by links; the result is its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    target = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    for site in dict.fromkeys([installed_torch().site_packages, Path(sysconfig.get_path("purelib"))]):
        for entry in site.iterdir():
            link = target / entry.name
            if not entry.name.startswith("backbind") and entry.suffix != ".pth" and not link.exists():
                link.symlink_to(entry)
    return python


def test_pip_install_with_build_isolation(source_tree: Path, tmp_path: Path) -> None:
    python = fresh_environment(tmp_path / "environment")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # Nothing here is about speed, and without optimisation the compiler needs half the time.
    environment = {**os.environ, "CXXFLAGS": "-O0"}
    environment.pop("PYTHONPATH", None)
    command = [str(python), *PIP[1:], "install", str(source_tree)]
    subprocess.run(command, cwd=elsewhere, env=environment, check=True)
    finished = subprocess.run(
        [str(python), "-P", "-c", CAPTURE],
        cwd=elsewhere,
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    said = json.loads(finished.stdout)
    assert Path(said.pop("package")).is_relative_to(tmp_path / "environment")
    release = installed_torch().release
    assert said == {"equal": True, "replays": 2, "built_for": release, "requires": [f"torch=={release}"]}
