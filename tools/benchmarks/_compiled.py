"""Compiles the C++ of a benchmark: a folder beside this file, whose library registers classes with torch."""

import os
from pathlib import Path
from unittest.mock import patch

from torch.utils import cpp_extension

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "benchmarks"


def load(folder: str, build_folder: Path | None = None) -> None:
    """Load the library of ``folder``, compiled unless it is up to date; several processes may ask at once."""
    build_folder = build_folder or BUILD / folder
    build_folder.mkdir(parents=True, exist_ok=True)
    with patch.dict(os.environ, {"MAX_JOBS": os.environ.get("MAX_JOBS", "1")}):
        cpp_extension.load(
            name=f"backbind_{folder}",
            sources=[str(path) for path in sorted((HERE / folder).glob("*.cpp"))],
            build_directory=str(build_folder),
            extra_cflags=["-O2"],
            is_python_module=False,
            is_standalone=False,
        )
