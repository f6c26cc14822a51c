"""Every node struct of an installed torch, as a C++ compiler reads it from the generated header.

This is the other witness of what a node saves: the model comes from YAML, the structs come from the header
that torch was compiled with. libclang is needed to develop and to check, never to build.
"""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .background import Background, BackgroundError
from .cache import Cache, content_key, own_sources
from .kept_run import KeptRun
from .locate import TorchInstall

NAMESPACE = ("torch", "autograd", "generated")
_ERROR = 3
"""The severity from which a diagnostic of libclang means that something was not understood."""


class LibclangMissingError(Exception):
    """The header cannot be read on this machine: libclang or a compiler's own headers are not there."""


class HeaderUnreadableError(Exception):
    """libclang does not understand the header; the message is its first complaint."""


@dataclass(frozen=True)
class NodeStruct:
    """One node struct."""

    base: str
    """``TraceableFunction`` or ``Node``."""
    fields: Mapping[str, str]
    """Type by name, in order, as `plain_type` writes it: ``{"self_": "SavedVariable"}``."""


class NodeStructsRun(KeptRun[dict[str, NodeStruct]]):
    """The node structs by name, on their way."""

    def __init__(self, install: TorchInstall, cache: Cache) -> None:
        arguments = [str(install.functions_header), str(install.include)]
        super().__init__(
            cache,
            "node-structs",
            content_key(install.functions_header, *own_sources("torch_install/node_structs.py")),
            start=lambda: Background("node_structs", "read_plain", arguments),
            from_plain=lambda plain: {name: NodeStruct(base, dict(fields)) for name, base, fields in plain},
        )

    def result(self) -> dict[str, NodeStruct]:
        """The structs by name.

        Raises:
            LibclangMissingError: libclang is not installed, or finds no compiler's headers.
            HeaderUnreadableError: the header is not valid for it.
        """
        try:
            return super().result()
        except BackgroundError as error:
            if error.kind == LibclangMissingError.__name__:
                raise LibclangMissingError(str(error)) from error
            raise HeaderUnreadableError(str(error)) from error


def read_plain(header: str, include: str) -> list[Any]:
    """In the other process: name, base and fields of every struct."""
    structs = read_node_structs(Path(header), Path(include))
    return [[name, struct.base, list(struct.fields.items())] for name, struct in structs.items()]


def read_node_structs(header: Path, include: Path) -> dict[str, NodeStruct]:
    """The node structs that ``header`` defines, by name, in order.

    Raises:
        LibclangMissingError: libclang is not installed, or finds no compiler's headers.
        HeaderUnreadableError: the header is not valid for it.
    """
    try:
        clang: Any = importlib.import_module("clang.cindex")
    except ImportError as error:
        raise LibclangMissingError("the Python package 'libclang' is not installed") from error
    unit = clang.Index.create().parse(
        str(header),
        args=["-x", "c++", "-std=c++20", "-isystem", str(_compiler_headers()), f"-I{include}"],
        options=clang.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES,
    )
    for diagnostic in unit.diagnostics:
        if diagnostic.severity >= _ERROR:
            place = f"{Path(str(diagnostic.location.file)).name}:{diagnostic.location.line}"
            raise HeaderUnreadableError(f"libclang cannot read {header.name}: {place}: {diagnostic.spelling}")
    kinds = clang.CursorKind
    return {
        cursor.spelling: _struct(cursor, kinds)
        for space in _namespaces(unit.cursor, kinds, NAMESPACE)
        for cursor in space.get_children()
        if cursor.kind == kinds.STRUCT_DECL
        and cursor.is_definition()
        and cursor.location.file.name == str(header)
        if _bases(cursor, kinds)
    }


def _namespaces(cursor: Any, kinds: Any, path: tuple[str, ...]) -> list[Any]:
    """Every opening of the namespace ``path`` below ``cursor``."""
    if not path:
        return [cursor]
    found = []
    for child in cursor.get_children():
        if child.kind == kinds.NAMESPACE and child.spelling == path[0]:
            found += _namespaces(child, kinds, path[1:])
    return found


def _bases(cursor: Any, kinds: Any) -> list[str]:
    return [
        plain_type(one.type.spelling) for one in cursor.get_children() if one.kind == kinds.CXX_BASE_SPECIFIER
    ]


def _struct(cursor: Any, kinds: Any) -> NodeStruct:
    fields = {
        one.spelling: plain_type(one.type.spelling)
        for one in cursor.get_children()
        if one.kind == kinds.FIELD_DECL
    }
    return NodeStruct(", ".join(_bases(cursor, kinds)), fields)


def plain_type(spelling: str) -> str:
    """A C++ type as ``SavedType.member`` writes it.

    >>> plain_type("::std::vector< ::std::vector<int64_t> >")
    'std::vector<std::vector<int64_t>>'
    >>> plain_type("torch::autograd::generated::TypeAndSize")
    'TypeAndSize'
    """
    spelling = spelling.replace(" ", "")
    spelling = re.sub(r"torch::autograd::(generated::)?", "", spelling)
    return re.sub(r"(?<![\w:])::", "", spelling)


def _compiler_headers() -> Path:
    """The headers that belong to a compiler, <stddef.h> and the like, which libclang does not bring along."""
    for compiler in ("g++", "c++", "clang++"):
        program = shutil.which(compiler)
        if program is None:
            continue
        asked = subprocess.run(
            [program, "-print-file-name=include"], capture_output=True, text=True, check=False
        )
        folder = Path(asked.stdout.strip())
        if asked.returncode == 0 and folder.is_dir():
            return folder
    raise LibclangMissingError(
        "libclang needs a compiler's own headers, and none of 'g++', 'c++', 'clang++' is installed"
    )
