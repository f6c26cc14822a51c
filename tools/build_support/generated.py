"""Makes sure that the generated sources fit the installed torch, and makes them anew for another one."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codegen.torch_install.compiled_formulas import hash_of_derivatives
from tools.build_support.errors import BuildError
from tools.build_support.target_torch import find_torch
from tools.build_support.torch_facts import TorchFacts


def matching_generated(root: Path, build_dir: Path, torch: TorchFacts) -> Path:
    """The folder of generated sources to compile: ``root``/generated, or one of the build folder's own.

    The committed sources are for one release of torch. For another the generator writes into the build
    folder, so that a build never changes committed files.
    """
    committed = root / "generated"
    manifest = _read_manifest(committed)
    made_for = str(manifest["torch"])
    if made_for == torch.release:
        _require_same_derivatives(committed, manifest)
        return committed
    own = build_dir / "generated"
    command = [
        *(sys.executable, str(root / "tools" / "regen.py")),
        *("--out", str(own), "--torch-root", str(torch.site_packages)),
    ]
    finished = subprocess.run(command, cwd=root, check=False)
    if finished.returncode != 0:
        raise BuildError(
            f"{committed} is for torch {made_for}, and generating for the installed torch "
            f"{torch.version} failed (see above). The command was: {' '.join(command)}"
        )
    return own


def _read_manifest(generated: Path) -> dict[str, Any]:
    manifest = generated / "manifest.json"
    if not manifest.exists():
        raise BuildError(
            f"{manifest} is missing, so {generated} cannot be trusted; write it anew with ./dev regen"
        )
    try:
        found: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
        found["torch"]
    except (ValueError, KeyError, TypeError) as error:
        raise BuildError(
            f'{manifest}: expected a JSON object with the key "torch" ({error!r}); '
            "write it anew with ./dev regen"
        ) from error
    return found


def _require_same_derivatives(generated: Path, manifest: Mapping[str, Any]) -> None:
    """Whoever edits the derivatives and only builds would get what was generated before, without a word."""
    install = find_torch()
    made_from = manifest.get("yaml_hash")
    if install is None or made_from is None or made_from == hash_of_derivatives(install):
        return
    raise BuildError(
        f"{generated} was not made from {install.derivatives_yaml} as it is now. If you edited that file, "
        "./dev regen makes the sources for it, or says why it cannot; otherwise restore it: "
        f"{sys.executable} -m pip install --force-reinstall --no-deps torch=={install.version}"
    )
