"""Saves traced backwards in files and loads them, without pickle: nothing that a file says is ever run.

A file is a safetensors file: its tensors are the memory of the constants, its metadata the structure as JSON.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors import torch as safetensors_torch

from backbind._torch_private import without_modes
from backbind.graph import strict_json
from backbind.graph.fields import Fields, shown, typed
from backbind.graph.file_errors import GraphFileError
from backbind.graph.graph_document import read_document, write_document
from backbind.graph.plain_graph import Hooks
from backbind.graph.stored_tensors import describe
from backbind.graph.traced_backward import TracedBackward

KEY = "backbind.graph"
FORMAT = 1
"""The newest format; every older one stays readable."""


def save(graph: TracedBackward, path: str | os.PathLike[str], *, hooks: Hooks = "refuse") -> None:
    """Save a traced backward in a file, which `load` reads in any process and on any machine.

    The file has the memory of all saved tensors in it, each with its strides and flags, and holds no code. It appears
    when it is whole: one that is there already is replaced then.

    Args:
        graph: what `backbind.trace` gave.
        path: the file.
        hooks: what becomes of hooks, which no file can hold. "drop" leaves them out: gradients of the loaded graph are
            those that the hooks would be given.

    Raises:
        TypeError: the graph is something else, or holds what no file can: hooks, functions of Python and C++, unpack
            hooks, symbols, or a tensor of a kind that is not stored. The message lists them.
        RuntimeError: eager's error, where a saved tensor was changed in place since the trace.
        ValueError: ``hooks`` is something else.
        OSError: the file cannot be written.
    """
    if not isinstance(graph, TracedBackward):
        raise TypeError(f"graph must be what backbind.trace gives, got {type(graph).__name__}")
    plain = graph.plain(hooks=hooks)
    with without_modes(), torch.no_grad():
        constants, pieces = describe(plain.constants)
    document = write_document(plain, constants)
    text = strict_json.dump(
        {"format": FORMAT, "fingerprint": _fingerprint(document, pieces), "graph": document}
    )
    _write(Path(path), safetensors_torch.save(pieces, {KEY: text}))


def load(path: str | os.PathLike[str]) -> TracedBackward:
    """The graph that `save` wrote in a file. It owns its constants, as a copy of a graph does.

    A file from anywhere may be loaded: nothing in it is run, and it can call nothing but the operators of a backward.

    Raises:
        GraphFileError: there is no such file, it is damaged or no graph, or it calls an operator that has another
            schema here, as in another release of torch.
    """
    try:
        with without_modes(), torch.no_grad():
            return _load(Path(path))
    except GraphFileError as error:
        reason = str(error)
    except RecursionError:
        reason = "its structure is nested too deeply"
    raise GraphFileError(f"'{os.fspath(path)}' cannot be loaded as a graph: {reason}")


def _load(path: Path) -> TracedBackward:
    metadata, pieces = _read(path)
    if set(metadata) != {KEY}:
        raise GraphFileError("it is a safetensors file, but none that backbind.save wrote")
    document = strict_json.parse(metadata[KEY])
    version = typed(document, dict, "its structure").get("format")
    if type(version) is not int or version < 1:
        raise GraphFileError(f"its format {shown(version)} is no version")
    if version > FORMAT:
        raise GraphFileError(
            f"it has format {version}, and this backbind reads formats up to {FORMAT}: load it with a newer one"
        )
    fields = Fields(document, "its structure", ("format", "fingerprint", "graph"))
    if fields.get("fingerprint", str) != _fingerprint(fields.any("graph"), pieces):
        raise GraphFileError("its content is not what its fingerprint says: it is damaged, or was changed")
    return read_document(fields.any("graph"), pieces)


def _read(path: Path) -> tuple[Mapping[str, str], dict[str, torch.Tensor]]:
    if not path.is_file():
        raise GraphFileError("there is no such file")
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
        raise GraphFileError(f"it is no safetensors file: {error}") from None


def _write(path: Path, content: bytes) -> None:
    """Nobody sees a part of the file: it gets its name when it is whole."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with part.open("xb") as file:
            file.write(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _fingerprint(document: Any, pieces: Mapping[str, torch.Tensor]) -> str:
    """A hash of everything that a graph consists of: of its structure and of the memory of its constants."""
    digest = hashlib.sha256(strict_json.dump(document).encode())
    for name in sorted(pieces):
        piece = pieces[name]
        digest.update(strict_json.dump([name, str(piece.dtype), list(piece.shape), piece.nbytes]).encode())
        if piece.numel() > 0:
            address = piece.data_ptr()  # of pieces alone, which lie in memory as they are stored
            digest.update((ctypes.c_char * piece.nbytes).from_address(address))
    return digest.hexdigest()
