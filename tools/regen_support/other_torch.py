"""The torch that ``--diff`` compares with: a folder that holds its packages, or a wheel."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codegen.torch_install.locate import TorchInstall, TorchNotFoundError, locate_torch
from tools.regen_support.errors import BadInputError


@contextmanager
def open_torch(path: Path) -> Iterator[TorchInstall]:
    """The torch in a folder or a wheel, which is unpacked for as long as needed.

    Raises:
        BadInputError: it is neither.
    """
    if path.is_file():
        with tempfile.TemporaryDirectory(prefix="backbind-torch-") as folder:
            unpack_torch(path, Path(folder))
            yield _locate(Path(folder), path)
    else:
        yield _locate(path, path)


def unpack_torch(wheel: Path, folder: Path, with_library: bool = False) -> None:
    """Take out of a wheel what the generator reads: YAML, torchgen, headers; the library only if asked for.

    Raises:
        BadInputError: the file is no wheel.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if _is_read(name, with_library)])
    except zipfile.BadZipFile as error:
        raise BadInputError(f"'{wheel}' is not a wheel: {error}") from error


def _is_read(name: str, with_library: bool) -> bool:
    """Whether the generator reads a file of the wheel."""
    wanted = name.startswith(("torchgen/", "torch/include/")) or name == "torch/version.py"
    return wanted or (with_library and name == "torch/lib/libtorch_cpu.so")


def _locate(folder: Path, asked_for: Path) -> TorchInstall:
    try:
        return locate_torch(folder)
    except TorchNotFoundError as error:
        raise BadInputError(
            f"'{asked_for}' is neither a torch wheel nor a folder with the packages 'torch' and 'torchgen': "
            f"{error}"
        ) from error
