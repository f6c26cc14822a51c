"""Compiles extension.cpp."""

from __future__ import annotations

from pathlib import Path

from tests.compiled import compile_library


def build_extension(folder: Path) -> Path:
    """The library, compiled into ``folder`` unless it is there; several processes may ask for it at once."""
    return compile_library("backbind_cases", [Path(__file__).with_name("extension.cpp")], folder)
