"""Compiles extension.cpp."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

from torch.utils import cpp_extension


def build_extension(folder: Path) -> Path:
    """The library, compiled into ``folder`` unless it is there; several processes may ask for it at once."""
    folder.mkdir(exist_ok=True)
    with patch.dict(os.environ, MAX_JOBS="1"):
        built = cpp_extension.load(
            name="backbind_cases",
            sources=[str(Path(__file__).with_name("extension.cpp"))],
            build_directory=str(folder),
            extra_cflags=["-O0"],
            is_python_module=False,
            is_standalone=False,
        )
    del built
    return folder / "backbind_cases.so"
