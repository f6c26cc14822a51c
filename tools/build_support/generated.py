"""Makes sure that the generated sources fit the installed torch, and makes them anew for another one."""

import json
import subprocess
import sys
from pathlib import Path

from tools.build_support.errors import BuildError
from tools.build_support.torch_facts import TorchFacts


def matching_generated(root: Path, build_dir: Path, torch: TorchFacts) -> Path:
    """The folder of generated sources to compile: ``root``/generated, or one of the build folder's own.

    The committed sources are for one release of torch. For another the generator writes into the build
    folder, so that a build never changes committed files.
    """
    committed = root / "generated"
    made_for = _made_for(committed)
    if made_for == torch.release:
        return committed
    own = build_dir / "generated"
    command = [sys.executable, str(root / "tools" / "regen.py"), "--out", str(own)]
    finished = subprocess.run(command, cwd=root, check=False)
    if finished.returncode != 0:
        raise BuildError(
            f"{committed} is for torch {made_for}, and generating for the installed torch "
            f"{torch.version} failed (see above). The command was: {' '.join(command)}"
        )
    return own


def _made_for(generated: Path) -> str:
    manifest = generated / "manifest.json"
    if not manifest.exists():
        raise BuildError(
            f"{manifest} is missing, so {generated} cannot be trusted; write it anew with ./dev regen"
        )
    try:
        release = json.loads(manifest.read_text(encoding="utf-8"))["torch"]
    except (ValueError, KeyError, TypeError) as error:
        raise BuildError(
            f'{manifest}: expected a JSON object with the key "torch" ({error!r}); '
            "write it anew with ./dev regen"
        ) from error
    return str(release)
