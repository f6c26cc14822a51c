"""A plugin of pytest that refuses to run with another extension than the one that is named.

A run that tested the ordinary extension by mistake would find nothing wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--extension", type=Path, required=True, help="the extension that must be in use")


def pytest_collection_finish(session: pytest.Session) -> None:
    from backbind import _C

    wanted = session.config.getoption("--extension")
    if not Path(_C.__file__).samefile(wanted):
        raise pytest.UsageError(f"backbind is loaded from {_C.__file__}; expected {wanted}")
