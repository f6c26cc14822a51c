"""Refuses to run under a torch that the compiled part was not built for: its layout of nodes would be another one."""

from __future__ import annotations

import torch

HOW_TO_REBUILD = (
    "rebuild it for this torch: './dev build' in a checkout, or 'pip install --force-reinstall backbind'"
)


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
    installed = release(torch.__version__)
    if installed != release(built_for):
        raise WrongTorchError(
            f"backbind was built for torch {built_for}, but torch {installed} is installed; {HOW_TO_REBUILD}"
        )
