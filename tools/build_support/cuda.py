"""Finds nvcc and turns TORCH_CUDA_ARCH_LIST into its options."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tools.build_support.errors import BuildError
from tools.build_support.options import Environment
from tools.build_support.torch_facts import TorchFacts

# Native code for the common data-centre parts; the PTX of the last serves whatever is newer.
DEFAULT_ARCHITECTURES = "8.0;9.0;10.0+PTX"

# The family names that TORCH_CUDA_ARCH_LIST may use in place of numbers.
_FAMILIES = {
    "volta": "7.0+PTX",
    "turing": "7.5+PTX",
    "ampere": "8.0;8.6+PTX",
    "ada": "8.9+PTX",
    "hopper": "9.0+PTX",
    "blackwell": "10.0;12.0+PTX",
}
_ARCHITECTURE = re.compile(r"(\d+)\.(\d+)([af]?)(\+PTX)?")


@dataclass(frozen=True)
class CudaToolkit:
    """A CUDA toolkit that fits the installed torch.

    Attributes:
        nvcc: its compiler.
        include: header folders, its own first, then those of the NVIDIA packages that torch depends on.
        libraries: link words for the CUDA runtime.
    """

    nvcc: Path
    include: tuple[Path, ...]
    libraries: tuple[str, ...]


def find_toolkit(torch: TorchFacts, environment: Environment) -> CudaToolkit | None:
    """The toolkit to compile .cu files with, or None where torch has no CUDA or no nvcc is at hand."""
    if not torch.cuda:
        return None
    nvidia = torch.site_packages / "nvidia"
    wheels = sorted(nvidia.glob("cu[0-9]*"))
    nvcc = _find_nvcc(environment, wheels)
    if nvcc is None:
        return None
    home = nvcc.resolve().parent.parent
    packages = [package / "include" for package in (*wheels, *sorted(nvidia.glob("*")))]
    folders = [home / "include", home / "include" / "cccl", *packages]
    include = tuple(dict.fromkeys(path for path in folders if path.is_dir()))
    return CudaToolkit(nvcc, include, _runtime(home, wheels))


def _find_nvcc(environment: Environment, wheels: list[Path]) -> Path | None:
    if environment.cuda_home is not None:
        nvcc = environment.cuda_home / "bin" / "nvcc"
        if not nvcc.exists():
            raise BuildError(f"CUDA_HOME is {environment.cuda_home}, but {nvcc} does not exist.")
        return nvcc
    on_path = shutil.which("nvcc", path=environment.search_path)
    if on_path is not None:
        return _behind_wrapper(Path(on_path))
    return next((nvcc for wheel in wheels if (nvcc := wheel / "bin" / "nvcc").exists()), None)


def _behind_wrapper(nvcc: Path) -> Path:
    # Some machines have a one-line shell script on PATH; the toolkit's folders lie beside the program it
    # starts.
    if nvcc.stat().st_size < 4096 and (
        found := re.search(r"^exec (\S+/nvcc)\b", nvcc.read_text(), re.MULTILINE)
    ):
        return Path(found.group(1))
    return nvcc


def _runtime(home: Path, wheels: list[Path]) -> tuple[str, ...]:
    # The wheels carry no libcudart.so link for -lcudart, only the library under its full name.
    for folder in (*(wheel / "lib" for wheel in wheels), home / "lib64", home / "lib"):
        for library in sorted(folder.glob("libcudart.so.*")):
            return (f"-L{folder}", f"-l:{library.name}")
    return (f"-L{home / 'lib64'}", "-lcudart")


def architecture_options(arch_list: str | None) -> tuple[str, ...]:
    """The -gencode options of nvcc for an architecture list such as ``8.0;9.0+PTX`` or ``Hopper``."""
    options: list[str] = []
    for name in re.split(r"[;,\s]+", (arch_list or DEFAULT_ARCHITECTURES).strip()):
        for item in _FAMILIES.get(name.lower(), name).split(";"):
            found = _ARCHITECTURE.fullmatch(item)
            if found is None:
                raise BuildError(
                    f"TORCH_CUDA_ARCH_LIST has {item!r}; expected numbers such as 8.0 or 9.0a, each "
                    f"perhaps with +PTX, or family names ({', '.join(sorted(_FAMILIES))}), separated by ';'."
                )
            major, minor, suffix, ptx = found.groups()
            number = f"{major}{minor}{suffix}"
            options.append(f"-gencode=arch=compute_{number},code=sm_{number}")
            if ptx:
                options.append(f"-gencode=arch=compute_{number},code=compute_{number}")
    return tuple(dict.fromkeys(options))
