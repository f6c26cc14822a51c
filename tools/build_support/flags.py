"""The flags of each kind of translation unit and of the link."""

import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tools.build_support.cuda import CudaToolkit, architecture_options
from tools.build_support.options import BuildOptions, Environment
from tools.build_support.sanitizers import SANITIZERS
from tools.build_support.sources import Sources, shown
from tools.build_support.torch_facts import TorchFacts

MODULE = "_C"


@dataclass(frozen=True)
class Flags:
    """Complete flag lists, without inputs and outputs.

    Attributes:
        common: what the precompiled header and every C++ file share. A precompiled header is only valid for
            files
            compiled with the same code-generation flags, so all C++ has one optimisation level.
        hand_written: added for csrc.
        generated: added for the generator's shards.
        nvcc: for .cu files; empty without a CUDA toolkit.
        link: libraries and link options, to follow the objects.
    """

    common: tuple[str, ...]
    hand_written: tuple[str, ...]
    generated: tuple[str, ...]
    nvcc: tuple[str, ...]
    link: tuple[str, ...]


def extension_file_name() -> str:
    """The extension's file name, with the suffix by which this Python finds it."""
    return MODULE + str(sysconfig.get_config_var("EXT_SUFFIX"))


def python_include() -> Path:
    """The folder of Python.h."""
    return Path(sysconfig.get_paths()["include"])


def choose_flags(
    options: BuildOptions,
    environment: Environment,
    torch: TorchFacts,
    sources: Sources,
    toolkit: CudaToolkit | None,
) -> Flags:
    """The flags of this build; ``toolkit`` is None where csrc/cuda is not compiled."""
    definitions = (
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.cxx11_abi)}",
        f"-DTORCH_EXTENSION_NAME={MODULE}",
        f'-DBACKBIND_TORCH_VERSION="{torch.release}"',
        # Not read by any source: it makes a change between the builds of one release (CPU, CUDA) compile
        # everything.
        f'-DBACKBIND_TORCH_BUILD="{torch.version}"',
        *(("-DBACKBIND_WITH_CUDA",) if toolkit else ()),
    )
    includes = (
        *(f"-I{shown(path, options.root)}" for path in sources.include_roots),
        f"-isystem{torch.include}",
        f"-isystem{torch.include / 'torch' / 'csrc' / 'api' / 'include'}",
        f"-isystem{python_include()}",
    )
    cuda_includes = tuple(f"-isystem{path}" for path in toolkit.include) if toolkit else ()
    sanitizer = SANITIZERS[options.sanitize] if options.sanitize is not None else None
    tuning = ("-O1", "-finline-small-functions", "-g0") if sanitizer is None else ("-O1", "-g1")
    return Flags(
        common=(
            "-std=c++20",
            *tuning,
            *(sanitizer.compile if sanitizer else ()),
            "-fPIC",
            "-fvisibility=hidden",
            # Ninja takes the colours out again where its output is no terminal.
            "-fdiagnostics-color=always",
            *definitions,
            *includes,
            *cuda_includes,
            *environment.cxxflags,
        ),
        # A mistake in a template or header shows in every node of a shard; a few errors of each file suffice.
        hand_written=("-Wall", "-fmax-errors=30"),
        generated=("-fmax-errors=10",),
        nvcc=()
        if toolkit is None
        else (
            "-std=c++20",
            "-O2",
            "--expt-relaxed-constexpr",
            "--expt-extended-lambda",
            *architecture_options(environment.cuda_arch_list),
            "-Xcompiler=-fPIC,-fvisibility=hidden",
            *definitions,
            *includes,
            *cuda_includes,
        ),
        link=(
            "-shared",
            *(sanitizer.link if sanitizer else ()),
            # torch is imported first, so its libraries are loaded by then; the run path serves tools such as
            # ldd when the package is installed beside torch.
            "-Wl,-rpath,$ORIGIN/../torch/lib",
            f"-L{torch.lib}",
            "-lc10",
            "-ltorch_cpu",
            "-ltorch",
            "-ltorch_python",
            *(("-lc10_cuda", "-ltorch_cuda", *toolkit.libraries) if toolkit else ()),
            *environment.ldflags,
        ),
    )
