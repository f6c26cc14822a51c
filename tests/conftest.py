"""What tests of every folder share: the installed torch, and the files of the next one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from codegen.installed.locate import TorchInstall, locate_torch

REPOSITORY = Path(__file__).resolve().parent.parent
NEXT_TORCH = "2.14.1"


@pytest.fixture(scope="session")
def installed_torch() -> TorchInstall:
    """The torch of this environment."""
    return locate_torch()


@pytest.fixture(scope="session")
def torch_2_14() -> TorchInstall:
    """The headers and YAML of torch 2.14.1, unpacked from its wheel; nothing of it can be imported.

    The wheel is downloaded once. BACKBIND_WHEEL_CACHE names the folder that keeps it; a wheel that lies there
    already is used without the network.
    """
    cache = Path(os.environ.get("BACKBIND_WHEEL_CACHE", REPOSITORY / ".cache"))
    unpacked = cache / f"torch-{NEXT_TORCH}"
    if not unpacked.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        _unpack(_wheel(cache), unpacked)
    return locate_torch(unpacked)


def _wheel(cache: Path) -> Path:
    found = sorted(cache.glob(f"torch-{NEXT_TORCH}-*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache)]
        subprocess.run([*command, f"torch=={NEXT_TORCH}"], check=True)
        found = sorted(cache.glob(f"torch-{NEXT_TORCH}-*.whl"))
    return found[0]


def _unpack(wheel: Path, target: Path) -> None:
    """Take what the generator reads; the compiled libraries, nearly all of the wheel, stay inside."""
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        wanted = [
            name
            for name in archive.namelist()
            if name.startswith(("torchgen/", "torch/include/")) or name == "torch/version.py"
        ]
        archive.extractall(partial, wanted)
    # A folder under its final name is complete, also after a run that was interrupted.
    partial.rename(target)
