"""Compiles C++ that tests call: libraries that register operators with torch, made once for a whole run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from torch.utils import cpp_extension


def compile_library(name: str, sources: Sequence[Path], folder: Path) -> Path:
    """The library, compiled into ``folder`` unless it is there, and loaded; several processes may ask at once."""
    folder.mkdir(exist_ok=True)
    with patch.dict(os.environ, MAX_JOBS="1"):
        cpp_extension.load(
            name=name,
            sources=[str(source) for source in sources],
            build_directory=str(folder),
            extra_cflags=["-O0"],
            is_python_module=False,
            is_standalone=False,
        )
    return folder / f"{name}.so"


def folder_of_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of a test run share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
