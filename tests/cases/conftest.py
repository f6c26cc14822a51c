"""The extension, compiled once for a whole run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cases.extension import build_extension


@pytest.fixture(scope="session")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of extension.cpp."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # the workers' common one
    return build_extension(folder / "extension")
