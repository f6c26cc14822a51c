"""Writes build.ninja and the files that it refers to.

Commands are short, because each flag list stands in a file of its own (``flags/<kind>-<fingerprint>``) that
the compiler reads with ``@``. The fingerprint in the name makes other flags another command, which is how
ninja learns that it must compile again.
"""

import io
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from ninja import ninja_syntax

from tools.build_support.configure import Build, fingerprint
from tools.build_support.sources import shown, unity_groups

_SUPPORT = Path(__file__).resolve().parent
# The one C++ file that each translation unit includes first when there is a precompiled header.
_PRECOMPILED_HEADER = "backbind_precompiled.h"


def write_ninja_file(build: Build) -> None:
    """Write the build file and its flag files. Content is written only where it differs.

    The build file gets a new time all the same: ninja runs this again when a source folder changed, and then
    expects a build file younger than the folder.
    """
    build.build_dir.mkdir(parents=True, exist_ok=True)
    _write_if_different(build.ninja_file, _NinjaFile(build).text())
    os.utime(build.ninja_file)


class _NinjaFile:
    """Collects the text for one build."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self._out = io.StringIO()
        self._writer = ninja_syntax.Writer(self._out, width=110)
        self._objects: list[str] = []

    def text(self) -> str:
        self._head()
        self._rules()
        header = self._precompiled_header()
        flags = self._build.flags
        sources = self._build.sources
        # The shards take longest, so they are named first.
        self._compile(sources.generated, "shard", (*flags.common, *flags.generated), header)
        self._compile(self._unity_sources(), "source", (*flags.common, *flags.hand_written), header)
        self._compile(sources.cuda_hosts, "source", (*flags.common, *flags.hand_written), header)
        self._compile_kernels()
        self._link()
        return self._out.getvalue()

    def _head(self) -> None:
        build = self._build
        self._writer.comment(
            f"Written by {self._show(_SUPPORT)}; run ninja -f {self._show(build.ninja_file)} at the"
        )
        self._writer.comment("root of the checkout, or ./dev build.")
        self._writer.newline()
        self._writer.variable("ninja_required_version", "1.10")
        self._writer.variable("builddir", self._show(build.build_dir))
        self._writer.variable("cxx", _command(build.environment.cxx))
        self._writer.newline()

    def _rules(self) -> None:
        writer = self._writer
        common = {"depfile": "$out.d", "deps": "gcc"}
        writer.rule("header", "$cxx @$flags -MMD -MF $out.d -x c++-header $in -o $out", "PCH $in", **common)
        writer.rule("compile", "$cxx @$flags $header -MMD -MF $out.d -c $in -o $out", "CXX $in", **common)
        if self._build.toolkit is not None:
            nvcc = _command([str(self._build.toolkit.nvcc)])
            writer.rule(
                "kernel", f"{nvcc} --options-file $flags -MD -MF $out.d -c $in -o $out", "CUDA $in", **common
            )
        writer.rule("link", "$cxx $in @$flags -o $out", "LINK $out")
        place = _command([sys.executable, self._show(_SUPPORT / "place.py")])
        writer.rule("place", f"{place} $in $out", "PLACE $out", restat=True)
        script = self._show(_SUPPORT.parent / "build.py")
        again = _command([sys.executable, script, *self._build.options.arguments(), "--configure-only"])
        writer.rule("configure", again, "CONFIGURE", generator=True)
        writer.newline()
        watched = [*self._build.sources.folders, *sorted(_SUPPORT.glob("*.py"))]
        writer.build(
            self._show(self._build.ninja_file), "configure", implicit=[self._show(path) for path in watched]
        )
        writer.newline()

    def _precompiled_header(self) -> str | None:
        """Emit the edge of the precompiled header. Returns the path to include it by, or None without one."""
        source = self._build.sources.precompiled_header
        if source is None:
            return None
        words = self._build.flags.common
        folder = self._build.build_dir / "pch" / fingerprint(self._build.compiler, *words)
        folder.mkdir(parents=True, exist_ok=True)
        # Compiling the header itself would warn about its #pragma once. And where a compiler declines the
        # compiled form, -include falls back to this file.
        wrapper = folder / _PRECOMPILED_HEADER
        _write_if_different(wrapper, f'#include "{source.name}"\n')
        self._writer.build(
            f"{self._show(wrapper)}.gch",
            "header",
            self._show(wrapper),
            implicit=self._flag_file("header", words),
            variables={"flags": self._flag_file("header", words)},
        )
        self._writer.newline()
        return self._show(wrapper)

    def _compile(self, paths: Iterable[Path], kind: str, flags: tuple[str, ...], header: str | None) -> None:
        for path in paths:
            variables = {"flags": self._flag_file(kind, flags)}
            implicit = [variables["flags"]]
            if header is not None:
                variables["header"] = f"-include {header} -Winvalid-pch"
                implicit.append(f"{header}.gch")
            self._objects += self._writer.build(
                self._object(path), "compile", self._show(path), implicit=implicit, variables=variables
            )
        self._writer.newline()

    def _unity_sources(self) -> list[Path]:
        """One file for each compiler run over hand-written sources; it includes those that are compiled together."""
        sources = self._build.sources
        folder = self._build.build_dir / "unity"
        folder.mkdir(exist_ok=True)
        files = []
        for name, paths in unity_groups(sources).items():
            if len(paths) == 1:
                files.append(paths[0])
                continue
            file = folder / f"{name}.cpp"
            includes = (path.relative_to(sources.include_roots[0]) for path in paths)
            _write_if_different(file, "".join(f'#include "{path}"\n' for path in includes))
            files.append(file)
        return files

    def _compile_kernels(self) -> None:
        for path in self._build.sources.cuda_kernels:
            flags = self._flag_file("kernel", self._build.flags.nvcc)
            self._objects += self._writer.build(
                self._object(path), "kernel", self._show(path), implicit=flags, variables={"flags": flags}
            )

    def _link(self) -> None:
        build = self._build
        extension = self._show(build.extension)
        flags = self._flag_file("link", build.flags.link)
        self._writer.build(extension, "link", self._objects, implicit=flags, variables={"flags": flags})
        default = extension
        if build.options.place:
            default = self._show(build.placed_extension)
            self._writer.build(default, "place", extension, implicit=self._show(_SUPPORT / "place.py"))
        self._writer.newline()
        self._writer.default(default)

    def _flag_file(self, kind: str, words: tuple[str, ...]) -> str:
        path = self._build.build_dir / "flags" / f"{kind}-{fingerprint(*words)}"
        path.parent.mkdir(exist_ok=True)
        # One flag a line, in the quoting that gcc, clang and nvcc share.
        _write_if_different(path, "".join(f"{_quoted(word)}\n" for word in words))
        return self._show(path)

    def _object(self, path: Path) -> str:
        build = self._build
        if path.is_relative_to(build.generated):
            place = Path("generated") / path.relative_to(build.generated)
        elif path.is_relative_to(build.build_dir):
            place = path.relative_to(build.build_dir)
        else:
            place = path.relative_to(build.options.root)
        return self._show(build.build_dir / "obj" / place.with_name(f"{place.name}.o"))

    def _show(self, path: Path) -> str:
        return shown(path, self._build.options.root)


def _command(words: Iterable[str]) -> str:
    escaped: str = ninja_syntax.escape(" ".join(shlex.quote(word) for word in words))
    return escaped


def _quoted(word: str) -> str:
    return word.replace("\\", "\\\\").replace('"', '\\"').replace(" ", "\\ ")


def _write_if_different(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
