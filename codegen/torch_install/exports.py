"""Which helper functions of a torch can be called from outside.

Formulas call some 200 helpers that one header declares, but the shared library exports only a few of them.
What is exported is read from the library's dynamic symbol table, so it is a fact about the wheel and never a
list kept here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from .locate import TorchInstall

_HELPER_SYMBOL = re.compile(r" [TW] torch::autograd::generated::details::(\w+)[(<]")
_INLINE_DEFINITION = re.compile(r"^inline [^;{(]*?(\w+)\(", re.MULTILINE)


class SymbolsUnreadableError(Exception):
    """The dynamic symbols of a library cannot be listed; the message says why."""


def callable_helpers(install: TorchInstall) -> frozenset[str]:
    """Names of helpers that link: exported by the library, or defined inline in the header.

    Raises:
        SymbolsUnreadableError: ``nm`` is missing or fails.
    """
    header = install.helpers_header.read_text()
    return exported_helpers(install) | frozenset(_INLINE_DEFINITION.findall(header))


def library_identity(library: Path) -> str:
    """Tells one build of a library from another without reading its hundreds of megabytes."""
    if not library.is_file():
        return "missing"
    facts = library.stat()
    return f"{library} {facts.st_size} {facts.st_mtime_ns}"


def exported_helpers(install: TorchInstall) -> frozenset[str]:
    """Names of helpers in the library's dynamic symbol table.

    Raises:
        SymbolsUnreadableError: ``nm`` is missing or fails.
    """
    program = shutil.which("nm")
    if program is None:
        raise SymbolsUnreadableError("program 'nm' not found; install binutils (it comes with g++)")
    listing = subprocess.run(
        [program, "-DC", "--defined-only", str(install.cpu_library)],
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        raise SymbolsUnreadableError(f"nm cannot read {install.cpu_library.name}: {listing.stderr.strip()}")
    return frozenset(_HELPER_SYMBOL.findall(listing.stdout))
