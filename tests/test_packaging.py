"""What a wheel contains, and that it works by itself: built, unpacked elsewhere and used from there."""

import json
import subprocess
import sys
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
        "backbind/ops/_catalog.py",
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


def test_wrong_torch_is_one_sentence(installed: Path, tmp_path: Path) -> None:
    record = installed / "backbind" / "_built_for.txt"
    built_for = record.read_text(encoding="utf-8")
    assert built_for == f"{installed_torch().release}\n"
    record.write_text("1.0.0\n", encoding="utf-8")
    try:
        finished = subprocess.run(
            [sys.executable, "-P", "-c", "import backbind"],
            cwd=tmp_path,
            env={"PATH": "", "PYTHONPATH": str(installed)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        record.write_text(built_for, encoding="utf-8")
    assert finished.returncode == 1
    last = finished.stderr.rstrip().splitlines()[-1]
    assert "backbind was built for torch 1.0.0, but torch" in last
    assert "rebuild it" in last
