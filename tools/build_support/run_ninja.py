"""Runs ninja on a configured build and says in a few lines what happened."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ninja

from tools.build_support.configure import Build
from tools.build_support.errors import BuildError
from tools.build_support.options import job_count
from tools.build_support.sources import shown

# Ninja's default leaves the time out.
_STATUS = "[%f/%t, %es] "


def run_ninja(build: Build) -> None:
    """Bring the extension up to date. Ninja shows its progress line on a terminal alone."""
    started = time.monotonic()
    _settle_build_file(build)
    steps = _pending_steps(build)
    target = build.placed_extension if build.options.place else build.extension
    name = shown(target, build.options.root)
    if steps == 0:
        print(f"{name} is up to date (torch {build.torch.version})")
        return
    jobs = job_count(build.options, build.environment)
    what = f"{steps} steps" if steps > 1 else "1 step"
    print(
        f"building {name}: {what}, {jobs} at once, torch {build.torch.version}, {build.compiler}", flush=True
    )
    words = ["-j", str(jobs)]
    if build.options.keep_going:
        words += ["-k", "0"]
    if build.options.verbose:
        words.append("-v")
    elif not sys.stdout.isatty():
        words.append("--quiet")
    finished = subprocess.run(_ninja(build, *words), cwd=build.options.root, env=_variables(), check=False)
    if finished.returncode != 0:
        raise BuildError(
            "the build failed; the compiler's messages are above. (--keep-going shows those of all files.)"
        )
    print(f"built {name} in {time.monotonic() - started:.1f} s")


@contextmanager
def build_folder_lock(folder: Path) -> Iterator[None]:
    """Keep two builds out of one folder; the second waits, and says so."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another build in {folder}", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _settle_build_file(build: Build) -> None:
    # Ninja goes by its own record of when it last ran the configure rule, so after every new source file it
    # would run it again, and a dry run would count that one step alone.
    if (build.build_dir / ".ninja_log").exists():
        command = _ninja(build, "--quiet", shown(build.ninja_file, build.options.root))
        subprocess.run(command, cwd=build.options.root, capture_output=True, check=False)


def _pending_steps(build: Build) -> int:
    # A dry run prints one line a step; its first line names the total.
    finished = subprocess.run(
        _ninja(build, "-n"),
        cwd=build.options.root,
        env={**os.environ, "NINJA_STATUS": "@%t@"},
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise BuildError(f"ninja rejects {build.ninja_file}:\n{finished.stdout}{finished.stderr}".rstrip())
    counts = [int(line.split("@")[1]) for line in finished.stdout.splitlines() if line.startswith("@")]
    return max(counts, default=0)


def _ninja(build: Build, *words: str) -> list[str]:
    program = Path(ninja.BIN_DIR) / "ninja"
    return [str(program), "-f", shown(build.ninja_file, build.options.root), *words]


def _variables() -> dict[str, str]:
    return {**os.environ, "NINJA_STATUS": os.environ.get("NINJA_STATUS", _STATUS)}
