"""Where an installed torch keeps the files that the generator reads.

Nothing here imports torch: finding a package costs milliseconds, importing torch costs seconds, and the generator
must also read a torch that cannot be imported on this machine (another version, a CUDA wheel without its libraries).
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

OLDEST, FIRST_UNKNOWN = (2, 13), (2, 15)
"""The releases that can be generated for: from the one, up to but not the other."""


def is_supported(version: str) -> bool:
    """Whether a release of torch can be generated for.

    >>> [is_supported(version) for version in ("2.12.1", "2.13.0", "2.14.1", "2.15.0")]
    [False, True, True, False]
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and OLDEST <= (int(found.group(1)), int(found.group(2))) < FIRST_UNKNOWN


class TorchNotFoundError(Exception):
    """No usable torch installation was found; the message says where it was looked for and what is missing."""


@dataclass(frozen=True)
class TorchInstall:
    """The files of one torch installation.

    Example: ``TorchInstall(root=site/"torch", torchgen=site/"torchgen", version="2.13.0")``.
    """

    root: Path
    """The ``torch`` package folder."""
    torchgen: Path
    """The ``torchgen`` package folder that the same wheel installs beside it."""
    version: str
    """The release without a local part: ``2.13.0`` for ``2.13.0+cpu``, so that CPU and CUDA builds generate alike."""

    @property
    def derivatives_yaml(self) -> Path:
        """The derivatives as packaged with torchgen."""
        return self.torchgen / "packaged" / "autograd" / "derivatives.yaml"

    @property
    def native_functions_yaml(self) -> Path:
        """The schemas of every ATen operator."""
        return self.torchgen / "packaged" / "ATen" / "native" / "native_functions.yaml"

    @property
    def tags_yaml(self) -> Path:
        """The tags that native_functions.yaml may use."""
        return self.torchgen / "packaged" / "ATen" / "native" / "tags.yaml"

    @property
    def include(self) -> Path:
        """The root of the C++ headers."""
        return self.root / "include"

    @property
    def lib(self) -> Path:
        """The folder of the shared libraries."""
        return self.root / "lib"

    @property
    def functions_header(self) -> Path:
        """The header that declares every generated node struct."""
        return self.include / "torch" / "csrc" / "autograd" / "generated" / "Functions.h"

    @property
    def helpers_header(self) -> Path:
        """The header that declares the helper functions which formulas call."""
        return self.include / "torch" / "csrc" / "autograd" / "FunctionsManual.h"

    @property
    def cpu_library(self) -> Path:
        """The library that holds the compiled nodes."""
        return self.lib / "libtorch_cpu.so"


def locate_torch(root: Path | None = None) -> TorchInstall:
    """Find torch: under ``root`` (a folder that holds ``torch`` and ``torchgen``), or as Python would import it.

    Raises:
        TorchNotFoundError: torch or torchgen is missing, or its version cannot be read.
    """
    if root is not None:
        torch_folder, torchgen_folder = root / "torch", root / "torchgen"
    else:
        torch_folder, torchgen_folder = _package_folder("torch"), _package_folder("torchgen")
    for folder in (torch_folder, torchgen_folder):
        if not folder.is_dir():
            raise TorchNotFoundError(
                f"no package '{folder.name}' at {folder}; expected an installed torch wheel"
            )
    return TorchInstall(torch_folder, torchgen_folder, _read_version(torch_folder))


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise TorchNotFoundError(
            f"python package '{name}' is not installed; install torch (pip install torch) first"
        )
    return Path(spec.origin).parent


def _read_version(torch_folder: Path) -> str:
    version_file = torch_folder / "version.py"
    if not version_file.is_file():
        raise TorchNotFoundError(f"no file {version_file}; expected the version of the installed torch there")
    found = re.search(r"^__version__ = '([^'+]+)", version_file.read_text(), re.MULTILINE)
    if found is None:
        raise TorchNotFoundError(f"no line '__version__ = ...' in {version_file}")
    return found.group(1)
