"""A small source tree and a stand-in compiler, with which the build is tested for real but without compiling.

The stand-in understands the options that the build passes, follows quoted includes for its depfile, refuses a
file that contains ``#error``, and logs every call. Its output is a text made of its inputs, so that different
inputs give different outputs.
"""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.build_support.torch_facts import installed_torch

_COMPILER = """
import hashlib, json, pathlib, re, shlex, sys

LOG = pathlib.Path({log!r})
words = []
for word in sys.argv[1:]:
    words += shlex.split(pathlib.Path(word[1:]).read_text()) if word.startswith("@") else [word]
if "--version" in words:
    print("stand-in compiler 1.0")
    sys.exit(0)
output = pathlib.Path(words[words.index("-o") + 1])
inputs = [word for word in words if re.search(r"\\.(cpp|h|o)$", word) and word != str(output)]
roots = [pathlib.Path(word[2:]) for word in words if word.startswith("-I")]


def closure(path, seen):
    if path in seen:
        return seen
    seen.append(path)
    text = path.read_text()
    if "#error" in text:
        sys.exit(f"{{path}}:1:2: error: #error")
    for name in re.findall(r'#include "([^"]+)"', text):
        for folder in (path.parent, *roots):
            if (folder / name).exists():
                closure(folder / name, seen)
                break
    return seen


read = []
for name in inputs:
    if name.endswith(".o"):
        read.append(pathlib.Path(name))
    elif not pathlib.Path(name + ".gch").exists():
        closure(pathlib.Path(name), read)
with LOG.open("a") as file:
    file.write(json.dumps({{"output": str(output), "inputs": inputs, "words": words}}) + "\\n")
output.parent.mkdir(parents=True, exist_ok=True)
digest = hashlib.sha256(b"".join(path.read_bytes() for path in read)).hexdigest()
output.write_text(f"{{digest}} {{words}}")
if "-MF" in words:
    depfile = pathlib.Path(words[words.index("-MF") + 1])
    depfile.write_text(f"{{output}}: " + " ".join(str(path) for path in read))
"""


@dataclass(frozen=True)
class Call:
    """One call of the stand-in compiler."""

    output: str
    inputs: tuple[str, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class BuildTree:
    """The tree, and what the stand-in compiler was asked for."""

    root: Path
    log: Path

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        # File systems keep times too coarsely for two writes in a row; make the new one clearly younger.
        newest = max((entry.stat().st_mtime for entry in self.root.rglob("*")), default=0.0)
        later = max(newest, path.stat().st_mtime) + 0.01
        os.utime(path, (later, later))
        return path

    def calls(self) -> list[Call]:
        """The calls since the last time this was asked."""
        if not self.log.exists():
            return []
        entries = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
        self.log.unlink()
        return [Call(entry["output"], tuple(entry["inputs"]), tuple(entry["words"])) for entry in entries]

    def made(self) -> set[str]:
        """The names of the files that were compiled or linked since the last time."""
        return {Path(call.output).name for call in self.calls()}


def make_build_tree(root: Path, monkeypatch: pytest.MonkeyPatch) -> BuildTree:
    """A tree: a precompiled header, two hand-written files with a common header, two generated shards."""
    support = root.parent / "stand-in"
    support.mkdir()
    tree = BuildTree(root, support / "log")
    script = support / "compiler.py"
    script.write_text(_COMPILER.format(log=str(tree.log)), encoding="utf-8")
    monkeypatch.setenv("CXX", f"'{sys.executable}' '{script}'")
    for name in ("CXXFLAGS", "LDFLAGS", "MAX_JOBS", "CUDA_HOME", "CUDA_PATH", "TORCH_CUDA_ARCH_LIST"):
        monkeypatch.delenv(name, raising=False)
    tree.write("csrc/precompiled.h", "// torch headers\n")
    tree.write("csrc/nodes/registry.h", "int registry();\n")
    tree.write("csrc/nodes/registry.cpp", '#include "nodes/registry.h"\nint registry() { return 0; }\n')
    tree.write("csrc/python/module.cpp", '#include "nodes/registry.h"\nint module() { return registry(); }\n')
    tree.write("generated/cpp/nodes_0.cpp", "int mul_backward();\n")
    tree.write("generated/cpp/nodes_1.cpp", "int add_backward();\n")
    tree.write("generated/manifest.json", json.dumps({"torch": installed_torch().release}))
    tree.write("generated/python/ops/__init__.py", "")
    tree.write("runtime/backbind/__init__.py", "")
    return tree
