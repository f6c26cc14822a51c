"""Compiles C++ libraries that register operators or classes with torch, for benchmarks and for tests."""

import os
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from torch.utils import cpp_extension


def load_library(name: str, sources: Sequence[Path], folder: Path, *, optimize: bool) -> Path:
    """The library, compiled into ``folder`` unless it is up to date, and loaded; several processes may ask at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with patch.dict(os.environ, {"MAX_JOBS": os.environ.get("MAX_JOBS", "1")}):
        cpp_extension.load(
            name=name,
            sources=[str(source) for source in sources],
            build_directory=str(folder),
            extra_cflags=["-O2" if optimize else "-O0"],
            is_python_module=False,
            is_standalone=False,
        )
    return folder / f"{name}.so"
