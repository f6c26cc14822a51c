"""Settles everything that a build depends on, before a line of the build file is written."""

import hashlib
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from tools.build_support.cuda import CudaToolkit, find_toolkit
from tools.build_support.errors import BuildError
from tools.build_support.flags import Flags, choose_flags, extension_file_name
from tools.build_support.generated import matching_generated
from tools.build_support.options import BuildOptions, Environment
from tools.build_support.sources import Sources, find_sources
from tools.build_support.torch_facts import TorchFacts, installed_torch


@dataclass(frozen=True)
class Build:
    """One build with every choice made.

    Attributes:
        options: what was asked for.
        environment: the variables it honours.
        torch: the torch that it is compiled against.
        build_dir: where everything made on the way lies.
        generated: the generated sources that are compiled.
        sources: the files.
        toolkit: for csrc/cuda, or None where that folder is left out.
        flags: for each kind of file.
        compiler: the compiler's own version line; a part of what makes a precompiled header valid.
        package: the folder that serves as the package ``backbind`` with this build's extension in it.
    """

    options: BuildOptions
    environment: Environment
    torch: TorchFacts
    build_dir: Path
    generated: Path
    sources: Sources
    toolkit: CudaToolkit | None
    flags: Flags
    compiler: str
    package: Path

    @property
    def extension(self) -> Path:
        """The linked extension, in the build folder."""
        return self.build_dir / extension_file_name()

    @property
    def placed_extension(self) -> Path:
        """The extension where Python imports it."""
        return self.package / extension_file_name()

    @property
    def has_own_package(self) -> bool:
        """Whether the package is one of links in the build folder, not the checkout's runtime/backbind."""
        return self.package.is_relative_to(self.build_dir)

    @property
    def ninja_file(self) -> Path:
        return self.build_dir / "build.ninja"


def configure(options: BuildOptions, environment: Environment) -> Build:
    torch = installed_torch()
    build_dir = options.build_dir or options.root / "build" / _folder_name(torch, options)
    if options.generated is not None and not (options.generated / "cpp").is_dir():
        raise BuildError(
            f"{options.generated}/cpp is no folder; --generated wants one that tools/regen.py wrote (--out)"
        )
    generated = options.generated or matching_generated(options.root, build_dir, torch)
    sources = find_sources(options.root, generated)
    toolkit = find_toolkit(torch, environment) if sources.cuda_kernels or sources.cuda_hosts else None
    if toolkit is None:
        sources = replace(sources, cuda_kernels=(), cuda_hosts=())
    if not options.precompiled_header:
        sources = replace(sources, precompiled_header=None)
    # A sanitized extension and one for another torch must not replace the ordinary one, so each has a package
    # of its own, made of links.
    ordinary = options.sanitize is None and generated == options.root / "generated"
    return Build(
        options=options,
        environment=environment,
        torch=torch,
        build_dir=build_dir,
        generated=generated,
        sources=sources,
        toolkit=toolkit,
        flags=choose_flags(options, environment, torch, sources, toolkit),
        compiler=_compiler_version(environment.cxx),
        package=options.root / "runtime" / "backbind" if ordinary else build_dir / "python" / "backbind",
    )


def fingerprint(*words: str) -> str:
    """A short name for a list of words; other words give another name."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:10]


def _folder_name(torch: TorchFacts, options: BuildOptions) -> str:
    name = f"torch-{torch.release}"
    return f"{name}-{options.sanitize}" if options.sanitize else name


def _compiler_version(cxx: tuple[str, ...]) -> str:
    command = [*cxx, "--version"]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(
            f"the C++ compiler {' '.join(cxx)!r} does not run ({error}). Install one (Debian, Ubuntu: "
            "apt-get install g++) or name it in the environment variable CXX."
        ) from error
    return finished.stdout.partition("\n")[0]
