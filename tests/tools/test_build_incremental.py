"""What is compiled again after which change: real ninja, a stand-in compiler."""

import json
import os
import subprocess
import sys
from pathlib import Path

import ninja
import pytest

from tests.tools.build_tree import BuildTree, make_build_tree
from tools.build import build_extension, main
from tools.build_support.flags import extension_file_name
from tools.build_support.options import BuildOptions
from tools.build_support.torch_facts import installed_torch

EXTENSION = extension_file_name()
HEADER = "backbind_precompiled.h.gch"
OBJECTS = {"registry.cpp.o", "module.cpp.o", "nodes_0.cpp.o", "nodes_1.cpp.o"}
FOLDER = f"build/torch-{installed_torch().release}"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildTree:
    return make_build_tree(tmp_path / "checkout", monkeypatch)


def build(tree: BuildTree) -> set[str]:
    """Build, and say what was compiled or linked for it."""
    tree.calls()
    build_extension(BuildOptions(root=tree.root))
    return tree.made()


@pytest.mark.parametrize("folder", ["checkout", "check out", "check$out"])
def test_first_build_makes_everything_and_the_second_nothing(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = make_build_tree(tmp_path / folder, monkeypatch)
    assert build(tree) == OBJECTS | {HEADER, EXTENSION}
    placed = tree.root / "runtime" / "backbind" / EXTENSION
    assert placed.samefile(tree.root / FOLDER / EXTENSION)
    assert (placed.parent / "_built_for.txt").read_text(encoding="utf-8") == f"{installed_torch().release}\n"
    assert build(tree) == set()


@pytest.mark.parametrize(
    ("changed", "compiled"),
    [
        ("generated/cpp/nodes_0.cpp", {"nodes_0.cpp.o"}),
        ("generated/cpp/nodes_1.cpp", {"nodes_1.cpp.o"}),
        ("csrc/python/module.cpp", {"module.cpp.o"}),
        ("csrc/nodes/registry.h", {"registry.cpp.o", "module.cpp.o"}),
        ("csrc/precompiled.h", OBJECTS | {HEADER}),
    ],
)
def test_changed_file_compiles_what_depends_on_it(tree: BuildTree, changed: str, compiled: set[str]) -> None:
    build(tree)
    path = tree.root / changed
    tree.write(changed, path.read_text(encoding="utf-8") + "// changed\n")
    assert build(tree) == compiled | {EXTENSION}
    assert build(tree) == set()


def test_file_added_and_removed_links_again(tree: BuildTree) -> None:
    build(tree)
    added = tree.write("csrc/graph/walk.cpp", "int walk();\n")
    assert build(tree) == {"walk.cpp.o", EXTENSION}
    added.unlink()
    assert build(tree) == {EXTENSION}
    assert build(tree) == set()


def test_ninja_alone_notices_a_new_file(tree: BuildTree) -> None:
    build(tree)
    tree.write("csrc/nodes/second.cpp", "int second();\n")
    command = [str(Path(ninja.BIN_DIR) / "ninja"), "-f", f"{FOLDER}/build.ninja"]
    subprocess.run(command, cwd=tree.root, check=True, capture_output=True)
    assert tree.made() == {"nodes.cpp.o", EXTENSION}
    again = subprocess.run(command, cwd=tree.root, check=True, capture_output=True, text=True)
    assert again.stdout == "ninja: no work to do.\n"


@pytest.mark.parametrize(
    ("variable", "holders"),
    [("CXXFLAGS", OBJECTS | {HEADER}), ("LDFLAGS", {EXTENSION})],
)
def test_changed_flags_build_again(
    tree: BuildTree, monkeypatch: pytest.MonkeyPatch, variable: str, holders: set[str]
) -> None:
    build(tree)
    monkeypatch.setenv(variable, '-DNAME="two words"')
    tree.calls()
    build_extension(BuildOptions(root=tree.root))
    calls = tree.calls()
    assert {Path(call.output).name for call in calls} == holders | {EXTENSION}
    assert {Path(call.output).name for call in calls if "-DNAME=two words" in call.words} == holders


def test_without_precompiled_header_nothing_is_included_first(tree: BuildTree) -> None:
    build_extension(BuildOptions(root=tree.root, precompiled_header=False))
    calls = tree.calls()
    assert {Path(call.output).name for call in calls} == OBJECTS | {EXTENSION}
    assert not any("-include" in call.words for call in calls)


def test_precompiled_header_is_compiled_with_the_flags_of_its_users(tree: BuildTree) -> None:
    # A header compiled with other code generation flags makes gcc crash or ignore it.
    build_extension(BuildOptions(root=tree.root))
    not_code = {"-Wall", "-fmax-errors=30", "-fmax-errors=10", "-c", "-Winvalid-pch", "-MMD"}
    flags = {}
    for call in tree.calls():
        if "-shared" not in call.words:
            flags[Path(call.output).name] = [
                word
                for word in call.words
                if word.startswith("-") and word not in not_code | {"-include", "-x"}
            ]
    assert set(flags) == OBJECTS | {HEADER}
    assert all(words == flags[HEADER] for words in flags.values())


def test_sanitized_build_leaves_the_ordinary_extension_alone(
    tree: BuildTree, capsys: pytest.CaptureFixture[str]
) -> None:
    build(tree)
    ordinary = (tree.root / "runtime" / "backbind" / EXTENSION).read_bytes()
    capsys.readouterr()
    assert main(["--root", str(tree.root), "--sanitize", "address"]) == 0
    package = tree.root / f"{FOLDER}-address" / "python" / "backbind"
    assert (package / EXTENSION).read_bytes() != ordinary
    assert (package / "__init__.py").samefile(tree.root / "runtime" / "backbind" / "__init__.py")
    assert (tree.root / "runtime" / "backbind" / EXTENSION).read_bytes() == ordinary
    compiler = f"{sys.executable} {tree.log.parent / 'compiler.py'}"
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"use it by: PYTHONPATH={FOLDER}-address/python "
        f"LD_PRELOAD=$({compiler} -print-file-name=libasan.so) python ..."
    )
    assert all(
        "-fsanitize=address" in call.words for call in tree.calls() if FOLDER + "-address" in call.output
    )


def test_extension_of_another_build_in_place_is_replaced(tree: BuildTree) -> None:
    build(tree)
    placed = tree.root / "runtime" / "backbind" / EXTENSION
    placed.unlink()
    placed.write_text("built for another torch, later", encoding="utf-8")
    assert build(tree) == set()
    assert placed.samefile(tree.root / FOLDER / EXTENSION)


def test_error_names_the_file_and_what_to_do(tree: BuildTree, capfd: pytest.CaptureFixture[str]) -> None:
    build(tree)
    capfd.readouterr()
    tree.write("csrc/nodes/registry.cpp", "#error\n")
    tree.write("csrc/python/module.cpp", "#error\n")
    assert main(["--root", str(tree.root), "--keep-going"]) == 1
    captured = capfd.readouterr()
    assert "csrc/nodes/registry.cpp:1:2: error: #error\n" in captured.out
    assert "csrc/python/module.cpp:1:2: error: #error\n" in captured.out
    assert captured.err == (
        "tools/build.py: the build failed; the compiler's messages are above. "
        "(--keep-going shows those of all files.)\n"
    )


def test_output_away_from_a_terminal_is_two_lines(tree: BuildTree, capfd: pytest.CaptureFixture[str]) -> None:
    torch = installed_torch().version
    name = f"runtime/backbind/{EXTENSION}"
    assert main(["--root", str(tree.root), "--jobs", "1"]) == 0
    first, second = capfd.readouterr().out.splitlines()
    assert first == f"building {name}: 7 steps, 1 at once, torch {torch}, stand-in compiler 1.0"
    assert second.startswith(f"built {name} in ")
    assert main(["--root", str(tree.root)]) == 0
    assert capfd.readouterr().out == f"{name} is up to date (torch {torch})\n"


def test_generated_for_another_torch_is_generated_into_the_build_folder(tree: BuildTree) -> None:
    tree.write("generated/manifest.json", json.dumps({"torch": "1.0.0"}))
    tree.write(
        "tools/regen.py",
        "import pathlib, sys\n"
        "assert sys.argv[1] == '--out'\n"
        "cpp = pathlib.Path(sys.argv[2], 'cpp')\n"
        "if not cpp.exists():\n"
        "    cpp.mkdir(parents=True)\n"
        "    (cpp / 'nodes_0.cpp').write_text('int other();')\n"
        "    ops = pathlib.Path(sys.argv[2], 'python', 'ops')\n"
        "    ops.mkdir(parents=True)\n"
        "    (ops / '__init__.py').touch()\n",
    )
    committed = {path: path.stat().st_mtime_ns for path in (tree.root / "generated").rglob("*")}
    made = build_extension(BuildOptions(root=tree.root))
    shards = [call.inputs[-1] for call in tree.calls() if "nodes_" in Path(call.output).name]
    assert shards == [f"{FOLDER}/generated/cpp/nodes_0.cpp"]
    assert made.package == tree.root / FOLDER / "python" / "backbind"
    assert (made.package / "ops").resolve() == tree.root / FOLDER / "generated" / "python" / "ops"
    assert not (tree.root / "runtime" / "backbind" / EXTENSION).exists()
    assert {path: path.stat().st_mtime_ns for path in (tree.root / "generated").rglob("*")} == committed


def test_second_build_of_one_folder_waits_for_the_first(tree: BuildTree) -> None:
    command = [sys.executable, "-m", "tools.build", "--root", str(tree.root), "--jobs", "1"]
    repository = Path(__file__).resolve().parents[2]
    running = [subprocess.Popen(command, cwd=repository, env=os.environ) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert sorted(Path(call.output).name for call in tree.calls()) == sorted(OBJECTS | {HEADER, EXTENSION})
