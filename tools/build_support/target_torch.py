"""Which torch to compile for: the one that Python imports, else that of the environment to be installed into."""

from __future__ import annotations

import re
import site
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from codegen.torch_install.locate import TorchInstall, TorchNotFoundError, is_supported, locate_torch

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements" / "build.txt"


def find_torch(folders: Iterable[Path] | None = None) -> TorchInstall | None:
    """The torch to compile for, or None.

    Under build isolation a program like pip starts the interpreter of the environment that it installs into, and takes
    that environment's folder of packages off the module path. The folder itself is where it always was.

    Args:
        folders: where packages lie that cannot be imported; those of this interpreter unless given.
    """
    try:
        return locate_torch()
    except TorchNotFoundError:
        pass
    for folder in _package_folders() if folders is None else folders:
        try:
            found = locate_torch(folder)
        except TorchNotFoundError:
            continue
        # Another release is of no use; asking for the reference replaces it, as with any package that is too old.
        if is_supported(found.version):
            return found
    return None


def _package_folders() -> list[Path]:
    """Where this interpreter finds packages when nothing hides them."""
    folders = [sysconfig.get_path("platlib"), sysconfig.get_path("purelib")]
    if sys.prefix == sys.base_prefix:
        folders.append(site.getusersitepackages())
    elif _sees_base_packages(Path(sys.prefix, "pyvenv.cfg")):
        folders += [*site.getsitepackages([sys.base_prefix]), site.getusersitepackages()]
    return [Path(folder) for folder in dict.fromkeys(folders)]


def _sees_base_packages(configuration: Path) -> bool:
    """Whether a virtual environment was made with ``--system-site-packages``."""
    try:
        text = configuration.read_text(encoding="utf-8")
    except OSError:
        return False
    return (
        re.search(r"^include-system-site-packages\s*=\s*true\s*$", text, re.MULTILINE | re.IGNORECASE)
        is not None
    )


def reference_torch() -> str:
    """The release that a build asks for where no torch is there: the one that generated/ is for."""
    found = re.search(r"^torch==(\S+)$", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, f"{REQUIREMENTS} names no torch"
    return found.group(1)


def required_torch() -> str:
    """What the built package requires; it accepts every build of the release, such as ``2.13.0+cpu``."""
    found = find_torch()
    return f"torch=={reference_torch() if found is None else found.version}"


def missing_torch() -> list[str]:
    """What a build must be given."""
    return [] if find_torch() is not None else [f"torch=={reference_torch()}"]
