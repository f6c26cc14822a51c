"""Every output of the generator, one line each. A new output is a new module and a new line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import bindings, coverage, functional_header, manifest, namespace, records, reference, shards, stubs
from .rendering import Renderer

Emit = Callable[[Renderer], Mapping[str, str]]
"""Maps a model (inside its renderer) to the texts of files, by path below the output folder."""


@dataclass(frozen=True)
class Emitter:
    """One kind of output."""

    name: str
    help: str
    emit: Emit


EMITTERS: tuple[Emitter, ...] = (
    Emitter("shards", "C++ functional backwards, packers and bindings of all nodes", shards.emit),
    Emitter("bindings", "C++ list of all shards", bindings.emit),
    Emitter("functional-header", "C++ declarations of the functional backwards", functional_header.emit),
    Emitter("records", "what Python knows about each node, by area", records.emit),
    Emitter("namespace", "Python module backbind.ops", namespace.emit),
    Emitter("stubs", "type stubs of backbind.ops, by area", stubs.emit),
    Emitter("reference", "reference pages for people, by area", reference.emit),
    Emitter("coverage", "table of all nodes with mode and reason", coverage.emit),
    Emitter("manifest", "machine-readable list of nodes with formula hashes", manifest.emit),
)


def emit_all(renderer: Renderer) -> dict[str, str]:
    """The texts of every output file, by path; paths are sorted."""
    texts: dict[str, str] = {}
    for emitter in EMITTERS:
        for path, text in emitter.emit(renderer).items():
            if path in texts:
                raise ValueError(f"two emitters write '{path}'")
            texts[path] = text
    return dict(sorted(texts.items()))
