"""What the caller asked for: the command line, and the environment variables that builds usually honour."""

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.build_support.errors import BuildError
from tools.build_support.sanitizers import SANITIZERS

REPOSITORY = Path(__file__).resolve().parents[2]

# The heaviest translation units (the precompiled header) need this much; more jobs than memory allows would
# swap.
_BYTES_PER_JOB = 2 << 30


@dataclass(frozen=True)
class Environment:
    """The environment variables that steer the build, read once.

    Attributes:
        cxx: the compiler's command, e.g. ``("ccache", "g++")``.
        cxxflags: appended to our own compile flags, so that they win.
        ldflags: appended to our own link flags.
        max_jobs: MAX_JOBS, or None where it is not set.
        cuda_home: CUDA_HOME or CUDA_PATH, or None.
        cuda_arch_list: TORCH_CUDA_ARCH_LIST as written, or None.
        search_path: PATH, for finding nvcc.
    """

    cxx: tuple[str, ...]
    cxxflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    max_jobs: int | None
    cuda_home: Path | None
    cuda_arch_list: str | None
    search_path: str

    @staticmethod
    def read(variables: Mapping[str, str] = os.environ) -> "Environment":
        cuda_home = variables.get("CUDA_HOME") or variables.get("CUDA_PATH")
        return Environment(
            cxx=tuple(shlex.split(variables.get("CXX", ""))) or ("g++",),
            cxxflags=tuple(shlex.split(variables.get("CXXFLAGS", ""))),
            ldflags=tuple(shlex.split(variables.get("LDFLAGS", ""))),
            max_jobs=_positive(variables.get("MAX_JOBS"), "the environment variable MAX_JOBS"),
            cuda_home=Path(cuda_home) if cuda_home else None,
            cuda_arch_list=variables.get("TORCH_CUDA_ARCH_LIST") or None,
            search_path=variables.get("PATH", os.defpath),
        )


@dataclass(frozen=True)
class BuildOptions:
    """One build, as asked for.

    Attributes:
        root: the source tree (the checkout).
        build_dir: where objects go; None chooses a folder by torch version and sanitizer.
        generated: generated sources to compile; None chooses those that match the installed torch.
        jobs: how many compilers at once; None decides by MAX_JOBS, cores and memory.
        sanitize: a compiler sanitizer, or None.
        precompiled_header: whether to compile and use csrc/precompiled.h.
        place: whether the finished extension goes into the package.
        keep_going: compile on after an error, to collect those of every file.
        verbose: print each command.
    """

    root: Path = REPOSITORY
    build_dir: Path | None = None
    generated: Path | None = None
    jobs: int | None = None
    sanitize: str | None = None
    precompiled_header: bool = True
    place: bool = True
    keep_going: bool = False
    verbose: bool = False

    def arguments(self) -> list[str]:
        """The command line that asks for this build's configuration again (what the build file runs)."""
        words = ["--root", str(self.root)]
        if self.build_dir is not None:
            words += ["--build-dir", str(self.build_dir)]
        if self.generated is not None:
            words += ["--generated", str(self.generated)]
        if self.sanitize is not None:
            words += ["--sanitize", self.sanitize]
        if not self.precompiled_header:
            words.append("--no-pch")
        if not self.place:
            words.append("--no-place")
        return words


@dataclass(frozen=True)
class Request:
    """A parsed command line: the build, and whether to stop once the build file is written."""

    options: BuildOptions
    configure_only: bool


def parse_arguments(arguments: Sequence[str]) -> Request:
    parser = argparse.ArgumentParser(
        prog="tools/build.py",
        description="Compile the extension runtime/backbind/_C for the installed torch.",
        epilog="Honours CXX, CXXFLAGS, LDFLAGS, MAX_JOBS, CUDA_HOME and TORCH_CUDA_ARCH_LIST.",
    )
    parser.add_argument("-j", "--jobs", metavar="N", help="compilers at once (default: MAX_JOBS, else cores)")
    parser.add_argument("-k", "--keep-going", action="store_true", help="compile on after an error")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each command")
    parser.add_argument(
        "--sanitize", choices=SANITIZERS, help="build with a sanitizer, in a folder of its own"
    )
    parser.add_argument("--no-pch", action="store_true", help="do without the precompiled header")
    parser.add_argument("--no-place", action="store_true", help="leave the package's extension alone")
    parser.add_argument("--configure-only", action="store_true", help="write build.ninja, compile nothing")
    parser.add_argument("--build-dir", type=Path, metavar="DIR", help="default: build/torch-<version>")
    parser.add_argument(
        "--generated", type=Path, metavar="DIR", help="default: generated/, if made for this torch"
    )
    parser.add_argument("--root", type=Path, default=REPOSITORY, metavar="DIR", help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    options = BuildOptions(
        root=parsed.root.resolve(),
        build_dir=parsed.build_dir.resolve() if parsed.build_dir else None,
        generated=parsed.generated.resolve() if parsed.generated else None,
        jobs=_positive(parsed.jobs, "--jobs"),
        sanitize=parsed.sanitize,
        precompiled_header=not parsed.no_pch,
        place=not parsed.no_place,
        keep_going=parsed.keep_going,
        verbose=parsed.verbose,
    )
    return Request(options, parsed.configure_only)


def job_count(options: BuildOptions, environment: Environment) -> int:
    """How many compilers run at once: what was asked for, else as many as cores and memory carry."""
    asked = options.jobs or environment.max_jobs
    if asked is not None:
        return asked
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(cores, memory // _BYTES_PER_JOB))


def _positive(text: str | None, source: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise BuildError(f"{source} is {text!r}; expected a whole number of parallel jobs, at least 1.")
    return int(text)
