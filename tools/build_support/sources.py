"""Which files are compiled, together with which others, and by which of the kinds of flags."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.build_support.errors import BuildError

ALONE = frozenset({"python/bridge.cpp"})
"""Files that are compiled by themselves: this one alone includes torch's own Python headers."""


@dataclass(frozen=True)
class Sources:
    """The C++ of one build.

    Attributes:
        hand_written: csrc/**/*.cpp.
        generated: the generator's shards.
        cuda_kernels: csrc/cuda/*.cu; compiled only where nvcc and a CUDA torch are at hand.
        cuda_hosts: csrc/cuda/*.cpp; they call CUDA's runtime, so they go with the kernels.
        precompiled_header: csrc/precompiled.h, or None where there is none.
        include_roots: the folders that quoted includes start from.
        folders: every folder that was searched; a new file in one of them changes the list.
    """

    hand_written: tuple[Path, ...]
    generated: tuple[Path, ...]
    cuda_kernels: tuple[Path, ...]
    cuda_hosts: tuple[Path, ...]
    precompiled_header: Path | None
    include_roots: tuple[Path, ...]
    folders: tuple[Path, ...]


def find_sources(root: Path, generated: Path) -> Sources:
    """List the sources under ``root``/csrc and ``generated``/cpp, in an order independent of the disk."""
    csrc = root / "csrc"
    shards = generated / "cpp"
    cuda_folder = csrc / "cuda"
    written = sorted(csrc.rglob("*.cpp"))
    if not written:
        raise BuildError(f"{csrc}: no C++ sources (*.cpp) here; is --root the checkout?")
    header = csrc / "precompiled.h"
    return Sources(
        hand_written=tuple(path for path in written if path.parent != cuda_folder),
        generated=tuple(sorted(shards.glob("*.cpp"))),
        cuda_kernels=tuple(sorted(cuda_folder.glob("*.cu"))),
        cuda_hosts=tuple(path for path in written if path.parent == cuda_folder),
        precompiled_header=header if header.exists() else None,
        include_roots=(csrc, shards),
        folders=(csrc, *sorted(path for path in csrc.rglob("*") if path.is_dir()), shards),
    )


def unity_groups(sources: Sources) -> Mapping[str, tuple[Path, ...]]:
    """The hand-written files that one compiler run takes together, by the name of that run: the files of a folder.

    A compiler spends two seconds on torch's headers before it comes to our first line, even where they are precompiled.
    """
    (csrc, *_) = sources.include_roots
    found: dict[str, list[Path]] = {}
    for path in sources.hand_written:
        place = path.relative_to(csrc)
        group = place.with_suffix("") if str(place) in ALONE or place.parent == Path() else place.parent
        found.setdefault("_".join(group.parts), []).append(path)
    return {name: tuple(paths) for name, paths in found.items()}


def shown(path: Path, root: Path) -> str:
    """A path as commands and messages name it: relative to the checkout where it lies inside."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
