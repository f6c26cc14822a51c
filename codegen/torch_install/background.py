"""Runs a function of this package in a process of its own, while this one goes on.

libclang's reading of a large header needs it, which takes seconds on an otherwise idle core.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

_PACKAGES = Path(__file__).resolve().parents[2]
"""The folder that holds this package: the checkout, or ``backbind`` where it is installed."""

_CHILD = """
import sys
packages, module, function, *arguments = sys.argv[1:]
# Last, because an installed backbind has modules with the names of others.
sys.path.append(packages)
from codegen.torch_install.background import answer
answer(module, function, arguments)
"""


class BackgroundError(Exception):
    """The function raised, or its process ended without an answer."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        """Name of the exception's class: ``LibclangMissingError``."""


class Background:
    """A function that runs elsewhere; leaving the ``with`` block ends it, finished or not."""

    def __init__(self, module: str, function: str, arguments: list[str]) -> None:
        """Start ``function`` of the module ``module`` beside this one."""
        command = [sys.executable, "-P", "-c", _CHILD, str(_PACKAGES), module, function, *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> Background:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def result(self) -> Any:
        """What the function returned, as plain JSON data.

        Raises:
            BackgroundError: it raised an exception, or its process ended early.
        """
        output, errors = self._process.communicate()
        if self._process.returncode != 0 or not output:
            last = errors.strip().rpartition("\n")[2]
            raise BackgroundError("", f"the process ended with status {self._process.returncode}: {last}")
        answered: dict[str, Any] = json.loads(output)
        if "error" in answered:
            raise BackgroundError(*answered["error"])
        return answered["result"]


def answer(module: str, function: str, arguments: list[str]) -> None:
    """In the other process: call the function and write what it returns or raises to standard output."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Whatever else is printed must not mix with the answer.
    os.dup2(2, 1)
    answered: dict[str, Any]
    try:
        answered = {
            "result": getattr(importlib.import_module(f"{__package__}.{module}"), function)(*arguments)
        }
    except Exception as error:
        answered = {"error": [type(error).__name__, str(error) or type(error).__name__]}
    json.dump(answered, output)
    output.close()
    # Freeing what was read of a large header takes time, and nothing is left to be done.
    os._exit(0)
