"""Puts the linked extension into the package: ``python place.py BUILT PLACED``.

A running Python may have the old extension mapped, so the new one takes its name in one step and the old file
lives on until the process ends. A hard link costs no disk and shows by its inode whether the right file is in
place.
"""

import filecmp
import os
import shutil
import sys
from pathlib import Path

# An extension built for another torch cannot even be loaded, so a text beside it says which torch it needs.
BUILT_FOR = "_built_for.txt"


def record_torch(package: Path, release: str) -> None:
    """Note in the package which release of torch its extension was built for."""
    record = package / BUILT_FOR
    if not record.exists() or record.read_text(encoding="utf-8") != f"{release}\n":
        record.write_text(f"{release}\n", encoding="utf-8")


def place(built: Path, placed: Path) -> bool:
    """Make ``placed`` the same file as ``built``. Returns whether it was another one before."""
    if placed.exists() and (placed.samefile(built) or filecmp.cmp(built, placed, shallow=False)):
        return False
    placed.parent.mkdir(parents=True, exist_ok=True)
    fresh = placed.with_name(f".{placed.name}.{os.getpid()}")
    try:
        fresh.hardlink_to(built)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(built, fresh)
    fresh.replace(placed)
    return True


if __name__ == "__main__":
    place(Path(sys.argv[1]), Path(sys.argv[2]))
