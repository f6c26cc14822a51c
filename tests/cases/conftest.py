"""The extension, compiled once for a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.extension import build_extension
from tests.compiled import folder_of_run


@pytest.fixture(scope="session")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of extension.cpp."""
    return build_extension(folder_of_run(tmp_path_factory) / "extension")
