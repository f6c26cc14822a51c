"""Refuses to run under a torch that the compiled part was not built for: its layout of nodes would be another one."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

PACKAGE = Path(__file__).parent


class WrongTorchError(ImportError):
    """backbind was built for another torch than the installed one."""


def release(version: str) -> str:
    """The release without a local part.

    >>> release("2.13.0+cpu")
    '2.13.0'
    """
    return version.partition("+")[0]


def require_torch(built_for: str) -> None:
    """Raise WrongTorchError unless the installed torch is the one that backbind was built for."""
    installed, wanted = release(torch.__version__), release(built_for)
    if installed == wanted:
        return
    # The generator is needed only here, and takes time to import.
    from backbind.codegen.torch_install.locate import is_supported

    ways = [f"put that torch back: '{sys.executable} -m pip install torch=={wanted}'"]
    if is_supported(installed):
        ways.append(how_to_build(PACKAGE))
    raise WrongTorchError(
        f"backbind was built for torch {wanted}, but torch {installed} is installed. Either {', or '.join(ways)}"
        if len(ways) > 1
        else f"backbind was built for torch {wanted}, but torch {installed} is installed: {ways[0]}"
    )


def how_to_build(package: Path) -> str:
    """What makes the compiled part of ``package`` fit the installed torch, to be followed to the letter."""
    checkout = package.parent.parent
    if not (checkout / "dev").is_file():
        return (
            "build backbind for this one, in a folder with its sources: "
            f"'{sys.executable} -m pip install --force-reinstall --no-deps .'"
        )
    if Path(sys.prefix).is_relative_to(checkout):
        return f"build backbind for this one: '{checkout}/dev build', which says how to use what it builds"
    return f"build backbind for this one: '{sys.executable} -m pip install --no-deps --editable {checkout}'"
