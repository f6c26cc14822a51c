"""Compiles the extension runtime/backbind/_C for the installed torch: ``python tools/build.py --help``.

The build file is written anew each time (milliseconds), then ninja does what is left to do.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Run as a script, the first entry is this folder; the packages `tools` and `codegen` start at the
    # checkout.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from codegen.command_line import run_command
from tools.build_support.configure import Build, configure
from tools.build_support.errors import BuildError
from tools.build_support.ninja_file import write_ninja_file
from tools.build_support.options import BuildOptions, Environment, parse_arguments
from tools.build_support.package_links import link_package
from tools.build_support.place import place, record_torch
from tools.build_support.run_ninja import build_folder_lock, run_ninja
from tools.build_support.sanitizers import SANITIZERS
from tools.build_support.sources import shown


def build_extension(options: BuildOptions) -> Build:
    """Bring the extension up to date. Raises BuildError where that cannot be done."""
    build = configure(options, Environment.read())
    with build_folder_lock(build.build_dir):
        write_ninja_file(build)
        if options.place:
            _link_package(build)
        run_ninja(build)
        if options.place:
            # Ninja compares times; after a build for another torch the extension in place may be the younger
            # one.
            place(build.extension, build.placed_extension)
            record_torch(build.package, build.torch.release)
    return build


def prepare_package(options: BuildOptions) -> Path:
    """The folder that serves as the package ``backbind``, complete but for the extension."""
    build = configure(options, Environment.read())
    _link_package(build)
    return build.package


def main(arguments: list[str]) -> int:
    try:
        request = parse_arguments(arguments)
        if request.configure_only:
            write_ninja_file(configure(request.options, Environment.read()))
            return 0
        build = build_extension(request.options)
    except BuildError as error:
        print(f"tools/build.py: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        # A folder that cannot be written, a full disk.
        print(f"tools/build.py: {error.strerror}: {error.filename}", file=sys.stderr)
        return 1
    if request.options.place and build.has_own_package:
        print(_how_to_use(build))
    return 0


def _link_package(build: Build) -> None:
    if build.has_own_package:
        link_package(
            build.options.root / "runtime" / "backbind", build.package, build.generated / "python" / "ops"
        )


def _how_to_use(build: Build) -> str:
    prefix = f"PYTHONPATH={shown(build.package.parent, build.options.root)}"
    if build.options.sanitize is not None:
        library = SANITIZERS[build.options.sanitize].library
        prefix += f" LD_PRELOAD=$({' '.join(build.environment.cxx)} -print-file-name={library})"
    return f"use it by: {prefix} python ..."


if __name__ == "__main__":
    sys.exit(run_command(lambda: main(sys.argv[1:])))
