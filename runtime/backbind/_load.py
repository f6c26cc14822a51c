"""Loads the compiled part, or says in one sentence what to do."""

from __future__ import annotations

import importlib

from backbind._version_check import PACKAGE, how_to_build, require_torch

_BUILT_FOR = PACKAGE / "_built_for.txt"
"""Written by the build beside the extension: an extension for another torch cannot even be loaded to be asked."""


def load_compiled_part() -> None:
    """Import ``backbind._C`` after checking that it was built for the installed torch.

    Raises:
        WrongTorchError: it was built for another torch.
        ImportError: it was not built, or does not load.
    """
    if _BUILT_FOR.is_file():
        require_torch(_BUILT_FOR.read_text().strip())
    try:
        compiled = importlib.import_module("backbind._C")
    except ImportError as error:
        raise ImportError(
            f"the compiled part of backbind does not load ({error}); {how_to_build(PACKAGE)}"
        ) from error
    require_torch(compiled.torch_version)
