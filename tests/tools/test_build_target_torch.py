"""Which torch an installation is built for, and what the build backend asks for and requires."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from codegen.torch_install.locate import TorchInstall, TorchNotFoundError, locate_torch
from tools.build_support import target_torch
from tools.build_support.torch_facts import installed_torch

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def nothing_to_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under build isolation: torch is installed, perhaps, and cannot be imported."""
    locate = locate_torch

    def without_import(root: Path | None = None) -> TorchInstall:
        if root is None:
            raise TorchNotFoundError("hidden")
        return locate(root)

    monkeypatch.setattr(target_torch, "locate_torch", without_import)


def put_torch(folder: Path, version: str) -> Path:
    """What is looked at of an installed torch."""
    for package in ("torch", "torchgen"):
        (folder / package).mkdir(parents=True)
    (folder / "torch" / "version.py").write_text(f"__version__ = '{version}'\n", encoding="utf-8")
    return folder


@pytest.mark.usefixtures("nothing_to_import")
@pytest.mark.parametrize(
    ("versions", "missing", "required"),
    [
        ([], ["torch==2.13.0"], "torch==2.13.0"),
        (["2.13.0"], [], "torch==2.13.0"),
        (["2.13.0+cpu"], [], "torch==2.13.0"),
        (["2.14.1+cu130"], [], "torch==2.14.1"),
        (["2.14.1", "2.13.0"], [], "torch==2.14.1"),
        (["2.12.1"], ["torch==2.13.0"], "torch==2.13.0"),
        (["2.15.0"], ["torch==2.13.0"], "torch==2.13.0"),
        (["2.12.1", "2.14.1"], [], "torch==2.14.1"),
    ],
)
def test_torch_of_the_target_is_taken_where_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: list[str], missing: list[str], required: str
) -> None:
    folders = [put_torch(tmp_path / str(place), version) for place, version in enumerate(versions)]
    monkeypatch.setattr(target_torch, "_package_folders", lambda: folders)
    assert target_torch.missing_torch() == missing
    assert target_torch.required_torch() == required


@pytest.mark.usefixtures("nothing_to_import")
def test_remains_of_a_torch_are_none(tmp_path: Path) -> None:
    put_torch(tmp_path, "2.13.0")
    (tmp_path / "torch" / "version.py").unlink()
    assert target_torch.find_torch([tmp_path, tmp_path / "absent"]) is None


def test_torch_that_can_be_imported_comes_first(tmp_path: Path) -> None:
    put_torch(tmp_path, "2.14.1")
    found = target_torch.find_torch([tmp_path])
    assert found is not None
    assert found.version == installed_torch().release


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("include-system-site-packages = true\n", True),
        ("home = /usr\ninclude-system-site-packages=True \n", True),
        ("include-system-site-packages = false\n", False),
        ("", False),
        (None, False),
    ],
)
def test_environment_that_sees_the_base_s_packages(tmp_path: Path, text: str | None, seen: bool) -> None:
    configuration = tmp_path / "pyvenv.cfg"
    if text is not None:
        configuration.write_text(text, encoding="utf-8")
    assert target_torch._sees_base_packages(configuration) is seen


# Without its site packages, an interpreter is in the state in which pip calls the backend: the environment that is
# installed into is known by its prefix only.
ASK = """
import json, pathlib, sys
given = json.loads(sys.argv[1])
sys.prefix = sys.exec_prefix = given["environment"]
import sysconfig
for package in given["packages"]:
    folder = pathlib.Path(sysconfig.get_path("purelib"), package)
    folder.mkdir(parents=True)
    (folder / "version.py").write_text("__version__ = '2.14.1+cu130'\\n")
sys.path[:0] = given["path"]
from importlib.util import find_spec
hidden = find_spec("torch") is None
from tools import build_backend as backend
print(json.dumps([hidden, backend.get_requires_for_build_wheel(), backend.get_requires_for_build_editable()]))
"""


@pytest.mark.parametrize("there", [True, False])
def test_backend_sees_the_environment_that_isolation_hides(tmp_path: Path, there: bool) -> None:
    for module in ("setuptools", "_distutils_hack"):
        found = find_spec(module)
        assert found is not None
        assert found.origin is not None
        (tmp_path / module).symlink_to(Path(found.origin).parent)
    given = {
        "environment": str(tmp_path / "environment"),
        "packages": ["torch", "torchgen"] if there else [],
        "path": [str(REPOSITORY), str(tmp_path)],
    }
    command = [sys.executable, "-S", "-c", ASK, json.dumps(given)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    missing = [] if there else ["torch==2.13.0"]
    assert json.loads(finished.stdout.splitlines()[-1]) == [True, missing, missing]
