"""Compiles C++ that tests call: libraries that register operators with torch, made once for a whole run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools.compiled_library import load_library


def compile_library(name: str, sources: Sequence[Path], folder: Path) -> Path:
    """The library, compiled into ``folder`` unless it is there, and loaded; several processes may ask at once."""
    return load_library(name, sources, folder, optimize=False)


def folder_of_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of a test run share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
