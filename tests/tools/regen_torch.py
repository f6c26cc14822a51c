"""A torch that tests may change: headers and library are the installed one's, torchgen and its YAML are
copies.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from codegen.torch_install.locate import TorchInstall


@dataclass(frozen=True)
class ChangeableTorch:
    """A folder with the packages ``torch`` and ``torchgen``."""

    root: Path

    @property
    def yaml(self) -> Path:
        return self.root / "torchgen" / "packaged" / "autograd" / "derivatives.yaml"

    def replace(self, old: str, new: str) -> None:
        """Edit the derivatives at the one place where ``old`` stands."""
        text = self.yaml.read_text()
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        self.yaml.write_text(text.replace(old, new))


def copy_torch(installed: TorchInstall, root: Path) -> ChangeableTorch:
    """A torch in ``root`` that gives the same output as the installed one until it is changed."""
    package = root / "torch"
    package.mkdir(parents=True)
    for name in ("version.py", "include", "lib"):
        (package / name).symlink_to(installed.root / name)
    shutil.copytree(installed.torchgen, root / "torchgen", ignore=shutil.ignore_patterns("__pycache__"))
    return ChangeableTorch(root)
