"""A package folder made of links, for an extension that must not replace the ordinary one."""

from pathlib import Path

from tools.build_support.flags import extension_file_name
from tools.build_support.place import BUILT_FOR


def link_package(source: Path, target: Path, operators: Path) -> None:
    """Fill ``target`` with a link to each part of the package ``source``, without what the build adds to it.

    Args:
        source: runtime/backbind.
        target: the folder to fill; links that are no longer wanted are removed.
        operators: the generated Python that takes the place of ``backbind.ops``.
    """
    wanted = {
        path.name: path.resolve()
        for path in source.iterdir()
        if path.name not in ("__pycache__", extension_file_name(), BUILT_FOR)
    }
    wanted["ops"] = operators.resolve()
    target.mkdir(parents=True, exist_ok=True)
    for link in target.iterdir():
        if link.is_symlink() and wanted.get(link.name) != link.readlink():
            link.unlink()
    for name, path in wanted.items():
        link = target / name
        if not link.is_symlink():
            link.symlink_to(path)
