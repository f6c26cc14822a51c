"""The check against the installed header, as tools/regen.py makes it: required, reported, or left out by
request.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.torch_install.locate import TorchInstall
from tests.tools.regen_torch import copy_torch
from tools.regen_support.options import ROOT

REGEN = ROOT / "tools" / "regen.py"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def regen(folder: Path, cache: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REGEN), "--out", "out", "--cache", str(cache), *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def own_copy(path: Path, target: Path, below: Path) -> None:
    """Make the link ``below`` a real folder down to the file ``path``, a copy; the rest stays linked."""
    below.unlink()
    below.mkdir()
    first, *rest = path.parts
    for entry in target.iterdir():
        (below / entry.name).symlink_to(entry)
    if rest:
        own_copy(Path(*rest), target / first, below / first)
    else:
        (below / first).unlink()
        (below / first).write_bytes((target / first).read_bytes())


@pytest.mark.slow
def test_a_header_that_differs_stops_the_run(
    tmp_path: Path, cache: Path, installed_torch: TorchInstall
) -> None:
    torch = copy_torch(installed_torch, tmp_path / "site")
    relative = installed_torch.functions_header.relative_to(installed_torch.include)
    include = torch.root / "torch" / "include"
    own_copy(relative, installed_torch.include, include)
    header = include / relative
    text = header.read_text()
    struct = text.index("struct TORCH_API MulBackward0 ")
    field = text.index("at::ScalarType other_scalar_type;", struct)
    header.write_text(
        f"{text[:field]}at::Layout other_layout;{text[field + len('at::ScalarType other_scalar_type;') :]}"
    )
    found = regen(tmp_path, cache, "--torch-root", str(torch.root))
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == (
        "regen.py: 2 differences between derivatives.yaml and Functions.h of torch 2.13.0:\n"
        "  MulBackward0.other_layout: the header says 'at::Layout', the model has no such field\n"
        "  MulBackward0.other_scalar_type: the header has no such field, the model says 'at::ScalarType'\n"
        "hint: torch was compiled with the header. An edited formula may read only what its node saved; "
        "where none was edited the model is wrong: types stand in codegen/model/saved_types.py, names in "
        "codegen/names.py\n"
    )
    assert not (tmp_path / "out").exists()
    # Left out by request, nobody looks.
    assert regen(tmp_path, cache, "--torch-root", str(torch.root), "--no-header-check").returncode == 0


def test_without_libclang_the_run_goes_on_and_says_so(tmp_path: Path, cache: Path) -> None:
    # A package of that name without the module stands for an installation without libclang.
    (tmp_path / "packages" / "clang").mkdir(parents=True)
    (tmp_path / "packages" / "clang" / "__init__.py").touch()
    packages = {"PYTHONPATH": str(tmp_path / "packages")}
    written = regen(tmp_path, cache, **packages)
    assert written.returncode == 0
    assert written.stdout.split("\n")[-2] == (
        "note: the model was not held against the installed header (no libclang: the Python package "
        "'libclang' is not installed); 'pip install libclang' makes that possible, --no-header-check "
        "silences this"
    )
    silent = regen(tmp_path, cache, "--no-header-check", **packages)
    assert (silent.returncode, silent.stdout.count("\n")) == (0, 1)
    as_json = json.loads(regen(tmp_path, cache, "--check", "--json", **packages).stdout)
    assert as_json["header_check"] == "no libclang: the Python package 'libclang' is not installed"


@pytest.mark.slow
def test_a_run_that_left_the_check_out_does_not_count_as_checked(tmp_path: Path, cache: Path) -> None:
    def check(*arguments: str) -> tuple[str, bool]:
        stats = json.loads(regen(tmp_path, cache, "--json", "--stats", *arguments).stdout)["stats"]
        return stats["header_check"], stats["phases"] == {}

    assert check("--no-header-check") == ("not asked for", False)
    assert check("--no-header-check") == ("not asked for", True)
    assert check() == ("equal", False)
    assert check() == ("equal", True)
    # What was checked once serves those who do not ask.
    assert check("--no-header-check") == ("equal", True)
