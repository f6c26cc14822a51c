"""What the build must know of the installed torch, found without importing it (which takes two seconds)."""

import mmap
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.build_support.errors import BuildError
from tools.build_support.target_torch import find_torch, required_torch


@dataclass(frozen=True)
class TorchFacts:
    """An installed torch, as a compiler needs it.

    Attributes:
        release: e.g. ``2.13.0``; generated sources are made for a release.
        version: in full, e.g. ``2.13.0+cpu``.
        include: its folder of headers.
        lib: its folder of shared libraries.
        site_packages: the folder that torch's package lies in; NVIDIA's packages lie beside it.
        cxx11_abi: whether _GLIBCXX_USE_CXX11_ABI is 1.
        cuda: whether it was built with CUDA.
    """

    release: str
    version: str
    include: Path
    lib: Path
    site_packages: Path
    cxx11_abi: bool
    cuda: bool


def installed_torch() -> TorchFacts:
    torch = find_torch()
    if torch is None:
        raise BuildError(
            f"no torch to compile for: {sys.executable} has none that backbind can be built for (2.13 or 2.14). "
            f"Install one first, for example: {sys.executable} -m pip install {required_torch()}"
        )
    return TorchFacts(
        release=torch.version,
        version=_full_version(torch.root / "version.py", torch.version),
        include=torch.include,
        lib=torch.lib,
        site_packages=torch.root.parent,
        cxx11_abi=_uses_cxx11_abi(torch.lib / "libc10.so"),
        cuda=(torch.lib / "libtorch_cuda.so").exists(),
    )


def _full_version(version_file: Path, release: str) -> str:
    found = re.search(r"^__version__ = '([^']+)'", version_file.read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1) if found else release


def _uses_cxx11_abi(library: Path) -> bool:
    # The mangled name of the new std::string occurs in an exported symbol exactly when the library was
    # compiled with the new ABI; torch's own record of it needs an import.
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b"NSt7__cxx1112basic_string") >= 0
