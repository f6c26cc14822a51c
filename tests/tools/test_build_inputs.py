"""Which sources, generated files and CUDA toolkit a build takes."""

import dataclasses
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from codegen.torch_install.compiled_formulas import hash_of_derivatives
from tools.build_support.cuda import DEFAULT_ARCHITECTURES, architecture_options, find_toolkit
from tools.build_support.errors import BuildError
from tools.build_support.flags import choose_flags
from tools.build_support.generated import matching_generated
from tools.build_support.options import BuildOptions, Environment
from tools.build_support.sources import find_sources
from tools.build_support.target_torch import find_torch
from tools.build_support.torch_facts import TorchFacts

TORCH = TorchFacts(
    release="2.13.0",
    version="2.13.0+cpu",
    include=Path("/torch/include"),
    lib=Path("/torch/lib"),
    site_packages=Path("/site"),
    cxx11_abi=True,
    cuda=False,
)


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("", encoding="utf-8")


def test_sources_are_sorted_by_kind(tmp_path: Path) -> None:
    make(tmp_path, "csrc/b/z.cpp", "csrc/b/a.cpp", "csrc/a.cpp", "csrc/b/note.txt", "csrc/b/only.h")
    make(
        tmp_path,
        "csrc/cuda/stream.cpp",
        "csrc/cuda/sum.cu",
        "generated/cpp/nodes_1.cpp",
        "generated/cpp/nodes_0.cpp",
    )
    sources = find_sources(tmp_path, tmp_path / "generated")
    csrc, shards = tmp_path / "csrc", tmp_path / "generated" / "cpp"
    assert sources.hand_written == (csrc / "a.cpp", csrc / "b" / "a.cpp", csrc / "b" / "z.cpp")
    assert sources.generated == (shards / "nodes_0.cpp", shards / "nodes_1.cpp")
    assert sources.cuda_kernels == (csrc / "cuda" / "sum.cu",)
    assert sources.cuda_hosts == (csrc / "cuda" / "stream.cpp",)
    assert sources.precompiled_header is None
    assert sources.include_roots == (csrc, shards)
    assert sources.folders == (csrc, csrc / "b", csrc / "cuda", shards)


def test_tree_without_sources_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as raised:
        find_sources(tmp_path, tmp_path / "generated")
    assert str(raised.value) == f"{tmp_path}/csrc: no C++ sources (*.cpp) here; is --root the checkout?"


def test_committed_files_are_used_for_their_torch(tmp_path: Path) -> None:
    make(tmp_path, "generated/manifest.json")
    (tmp_path / "generated" / "manifest.json").write_text(
        json.dumps({"torch": TORCH.release}), encoding="utf-8"
    )
    assert matching_generated(tmp_path, tmp_path / "build", TORCH) == tmp_path / "generated"


def test_missing_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as raised:
        matching_generated(tmp_path, tmp_path / "build", TORCH)
    assert str(raised.value) == (
        f"{tmp_path}/generated/manifest.json is missing, so {tmp_path}/generated cannot be trusted; "
        "write it anew with ./dev regen"
    )


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "3"])
def test_broken_manifest_is_refused(tmp_path: Path, text: str) -> None:
    make(tmp_path, "generated/manifest.json")
    (tmp_path / "generated" / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(BuildError) as raised:
        matching_generated(tmp_path, tmp_path / "build", TORCH)
    message = str(raised.value)
    assert message.startswith(
        f'{tmp_path}/generated/manifest.json: expected a JSON object with the key "torch" ('
    )
    assert message.endswith("); write it anew with ./dev regen")


def test_failing_generator_is_reported_with_its_command(tmp_path: Path) -> None:
    make(tmp_path, "generated/manifest.json", "tools/regen.py")
    (tmp_path / "generated" / "manifest.json").write_text('{"torch": "2.14.1"}', encoding="utf-8")
    (tmp_path / "tools" / "regen.py").write_text("raise SystemExit(2)", encoding="utf-8")
    with pytest.raises(BuildError) as raised:
        matching_generated(tmp_path, tmp_path / "build", TORCH)
    assert str(raised.value) == (
        f"{tmp_path}/generated is for torch 2.14.1, and generating for the installed torch 2.13.0+cpu failed "
        f"(see above). The command was: {sys.executable} {tmp_path}/tools/regen.py "
        f"--out {tmp_path}/build/generated --torch-root {TORCH.site_packages}"
    )


def test_sources_of_other_derivatives_are_refused(tmp_path: Path) -> None:
    make(tmp_path, "generated/manifest.json")
    found = find_torch()
    assert found is not None
    torch = dataclasses.replace(TORCH, release=found.version)
    manifest = tmp_path / "generated" / "manifest.json"
    manifest.write_text(json.dumps({"torch": found.version, "yaml_hash": hash_of_derivatives(found)}))
    assert matching_generated(tmp_path, tmp_path / "build", torch) == tmp_path / "generated"
    manifest.write_text(json.dumps({"torch": found.version, "yaml_hash": "0" * 16}))
    with pytest.raises(BuildError) as raised:
        matching_generated(tmp_path, tmp_path / "build", torch)
    assert str(raised.value) == (
        f"{tmp_path}/generated was not made from {found.derivatives_yaml} as it is now. If you edited that file, "
        "./dev regen makes the sources for it, or says why it cannot; otherwise restore it: "
        f"{sys.executable} -m pip install --force-reinstall --no-deps torch=={found.version}"
    )


@pytest.mark.parametrize(
    ("arch_list", "codes"),
    [
        ("8.0", ["80,sm_80"]),
        ("8.0+PTX", ["80,sm_80", "80,compute_80"]),
        ("7.5;8.6 9.0a,12.0", ["75,sm_75", "86,sm_86", "90a,sm_90a", "120,sm_120"]),
        ("8.0;8.0+PTX", ["80,sm_80", "80,compute_80"]),
        ("Hopper", ["90,sm_90", "90,compute_90"]),
        ("ampere;9.0", ["80,sm_80", "86,sm_86", "86,compute_86", "90,sm_90"]),
        (None, ["80,sm_80", "90,sm_90", "100,sm_100", "100,compute_100"]),
        (DEFAULT_ARCHITECTURES, ["80,sm_80", "90,sm_90", "100,sm_100", "100,compute_100"]),
    ],
)
def test_architectures(arch_list: str | None, codes: list[str]) -> None:
    expected = tuple("-gencode=arch=compute_{},code={}".format(*code.split(",")) for code in codes)
    assert architecture_options(arch_list) == expected


@pytest.mark.parametrize("item", ["8", "sm_80", "8.0+ptx", "Kepler", "8.0b", "-"])
def test_unknown_architecture_is_named(item: str) -> None:
    with pytest.raises(BuildError) as raised:
        architecture_options(f"9.0;{item}")
    assert str(raised.value) == (
        f"TORCH_CUDA_ARCH_LIST has {item!r}; expected numbers such as 8.0 or 9.0a, each perhaps with +PTX, "
        "or family names (ada, ampere, blackwell, hopper, turing, volta), separated by ';'."
    )


def cuda_site(tmp_path: Path) -> TorchFacts:
    """NVIDIA's packages beside torch: headers and the runtime library, without a compiler."""
    site = tmp_path / "site"
    make(
        site,
        "nvidia/cu13/include/cusparse.h",
        "nvidia/cu13/lib/libcudart.so.13",
        "nvidia/cudnn/include/cudnn.h",
    )
    return replace(TORCH, site_packages=site, cuda=True)


def toolkit_folder(home: Path) -> Path:
    make(home, "bin/nvcc", "include/cuda_runtime.h", "include/cccl/cub/cub.cuh", "lib64/libcudart.so.12")
    (home / "bin" / "nvcc").chmod(0o755)
    return home


def test_toolkit_of_cuda_home(tmp_path: Path) -> None:
    torch, home = cuda_site(tmp_path), toolkit_folder(tmp_path / "cuda")
    toolkit = find_toolkit(torch, Environment.read({"CUDA_HOME": str(home), "PATH": ""}))
    assert toolkit is not None
    assert toolkit.nvcc == home / "bin" / "nvcc"
    nvidia = torch.site_packages / "nvidia"
    folders = (home / "include", home / "include/cccl", nvidia / "cu13/include", nvidia / "cudnn/include")
    assert toolkit.include == folders
    assert toolkit.libraries == (f"-L{nvidia}/cu13/lib", "-l:libcudart.so.13")


def test_nvcc_on_path_may_be_a_wrapper_script(tmp_path: Path) -> None:
    torch, home = cuda_site(tmp_path), toolkit_folder(tmp_path / "cuda")
    wrapper = tmp_path / "bin" / "nvcc"
    make(tmp_path, "bin/nvcc")
    wrapper.write_text(f'#!/bin/sh\nexec {home}/bin/nvcc "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    toolkit = find_toolkit(torch, Environment.read({"PATH": str(wrapper.parent)}))
    assert toolkit is not None
    assert toolkit.nvcc == home / "bin" / "nvcc"


def test_nvcc_package_beside_torch(tmp_path: Path) -> None:
    torch = cuda_site(tmp_path)
    make(torch.site_packages, "nvidia/cu13/bin/nvcc")
    toolkit = find_toolkit(torch, Environment.read({"PATH": ""}))
    assert toolkit is not None
    assert toolkit.nvcc == torch.site_packages / "nvidia" / "cu13" / "bin" / "nvcc"


def test_no_toolkit_without_nvcc_or_without_cuda_torch(tmp_path: Path) -> None:
    home = toolkit_folder(tmp_path / "cuda")
    assert find_toolkit(cuda_site(tmp_path), Environment.read({"PATH": ""})) is None
    assert find_toolkit(TORCH, Environment.read({"CUDA_HOME": str(home), "PATH": ""})) is None


def test_wrong_cuda_home_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as raised:
        find_toolkit(cuda_site(tmp_path), Environment.read({"CUDA_HOME": str(tmp_path), "PATH": ""}))
    assert str(raised.value) == f"CUDA_HOME is {tmp_path}, but {tmp_path}/bin/nvcc does not exist."


@pytest.mark.parametrize("with_toolkit", [False, True])
def test_cuda_libraries_are_linked_with_a_toolkit_alone(tmp_path: Path, with_toolkit: bool) -> None:
    make(tmp_path, "csrc/a.cpp", "csrc/cuda/sum.cu")
    environment = Environment.read({"CUDA_HOME": str(toolkit_folder(tmp_path / "cuda")), "PATH": ""})
    torch = cuda_site(tmp_path) if with_toolkit else TORCH
    sources = find_sources(tmp_path, tmp_path / "generated")
    options = BuildOptions(root=tmp_path)
    flags = choose_flags(options, environment, torch, sources, find_toolkit(torch, environment))
    assert ("-ltorch_cuda" in flags.link) is with_toolkit
    assert ("-DBACKBIND_WITH_CUDA" in flags.common) is with_toolkit
    assert bool(flags.nvcc) is with_toolkit


@pytest.mark.parametrize("abi", [False, True])
def test_flags_follow_torch(tmp_path: Path, abi: bool) -> None:
    make(tmp_path, "csrc/a.cpp")
    environment = Environment.read({})
    torch = replace(TORCH, cxx11_abi=abi)
    flags = choose_flags(
        BuildOptions(root=tmp_path), environment, torch, find_sources(tmp_path, tmp_path / "generated"), None
    )
    assert f"-D_GLIBCXX_USE_CXX11_ABI={int(abi)}" in flags.common
    assert '-DBACKBIND_TORCH_VERSION="2.13.0"' in flags.common
    assert '-DBACKBIND_TORCH_BUILD="2.13.0+cpu"' in flags.common
    assert [word for word in flags.common if word.startswith("-I")] == ["-Icsrc", "-Igenerated/cpp"]
