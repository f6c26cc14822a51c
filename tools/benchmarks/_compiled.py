"""The C++ of a benchmark: a folder beside this file, whose library registers classes with torch."""

from pathlib import Path

from tools.compiled_library import load_library

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "benchmarks"


def load(folder: str, build_folder: Path | None = None) -> None:
    """Load the library of ``folder``, compiled unless it is up to date; several processes may ask at once."""
    sources = sorted((HERE / folder).glob("*.cpp"))
    load_library(f"backbind_{folder}", sources, build_folder or BUILD / folder, optimize=True)
