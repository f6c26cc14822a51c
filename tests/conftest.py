"""What tests of every folder share: the installed torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.torch_install.locate import TorchInstall, locate_torch

pytest_plugins = ["tests.oracle.plugin"]
"""Only here, because in a folder's conftest it would come too late for a run with several workers."""

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def installed_torch() -> TorchInstall:
    """The torch of this environment."""
    return locate_torch()
