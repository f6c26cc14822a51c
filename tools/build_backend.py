"""The build backend that pip, uv and build call: setuptools' own, told which torch a build needs.

The extension fits the release of torch that it was compiled for and no other, so a build takes the torch of the
environment that backbind is going to be installed into, and asks for one only where there is none. What is built then
requires the very same release.

pip runs this with the interpreter of that environment, but with its packages hidden; `tools.build_support.target_torch`
finds them all the same. It runs before anything is installed that this names, so it imports nothing but setuptools.
"""

from __future__ import annotations

from typing import Any

from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

from tools.build_support.target_torch import missing_torch

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:  # noqa: ARG001 (a part of the protocol)
    """The torch to compile for, where there is none yet."""
    return missing_torch()


get_requires_for_build_editable = get_requires_for_build_wheel
