"""Lets pip build the extension with tools/build.py; the metadata stands in pyproject.toml."""

import sys
import tempfile
from pathlib import Path

from setuptools import Extension, find_namespace_packages, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
SETUPTOOLS_FOLDER = ROOT / "build" / "setuptools"
# pip's build process does not put the source tree on the module path.
sys.path.insert(0, str(ROOT))

from tools.build import build_extension, prepare_package  # noqa: E402
from tools.build_support.configure import fingerprint  # noqa: E402
from tools.build_support.errors import BuildError  # noqa: E402
from tools.build_support.options import BuildOptions  # noqa: E402
from tools.build_support.place import place, record_torch  # noqa: E402
from tools.build_support.target_torch import find_torch, required_torch  # noqa: E402
from tools.build_support.torch_facts import installed_torch  # noqa: E402


class NinjaBuild(build_ext):  # type: ignore[misc] # setuptools carries no types
    """Builds the one extension by the project's own ninja file instead of by setuptools' compiler classes."""

    def run(self) -> None:
        # An editable install imports from the checkout, so the extension goes there as in any build; a wheel
        # takes it from the build folder and leaves the checkout as it is.
        editable = bool(self.inplace)
        try:
            built = build_extension(build_options(place=editable))
        except BuildError as error:
            sys.exit(f"backbind: {error}")
        if not editable:
            target = Path(self.get_ext_fullpath("backbind._C"))
            place(built.extension, target)
            record_torch(target.parent, built.torch.release)


def build_options(place: bool) -> BuildOptions:
    return BuildOptions(root=ROOT, build_dir=build_folder(installed_torch().site_packages), place=place)


def build_folder(site_packages: Path) -> Path | None:
    """Where objects go: what compiles for the torch of another environment must not make the checkout's own stale."""
    if site_packages.is_relative_to(ROOT):
        return None
    if site_packages.is_relative_to(tempfile.gettempdir()):
        # Under build isolation torch may lie in a folder with another name each time.
        return ROOT / "build" / "isolated"
    return ROOT / "build" / f"for-{fingerprint(str(site_packages))}"


def package_source() -> Path:
    """The folder that serves as the package ``backbind``; a source distribution is made without any torch."""
    if find_torch() is None:
        return ROOT / "runtime" / "backbind"
    return prepare_package(build_options(place=True))


try:
    source = package_source().parent
except BuildError as error:
    sys.exit(f"backbind: {error}")

# Each process a folder of its own: setuptools packs whatever it finds there, files of earlier builds included.
SETUPTOOLS_FOLDER.mkdir(parents=True, exist_ok=True)
build_base = tempfile.TemporaryDirectory(dir=SETUPTOOLS_FOLDER)

setup(
    package_dir={"": str(source.relative_to(ROOT))},
    # Templates lie in folders without __init__.py: packages all the same, with files in them.
    packages=find_namespace_packages(str(source), include=["backbind", "backbind.*"]),
    package_data={"": ["py.typed", "*.pyi", "*.json", "*.j2", "*.yaml"]},
    include_package_data=False,
    install_requires=["jinja2>=3.1", "pyyaml>=6.0", "safetensors>=0.8", required_torch()],
    ext_modules=[Extension("backbind._C", sources=[])],
    options={"build": {"build_base": str(Path(build_base.name).relative_to(ROOT))}},
    cmdclass={"build_ext": NinjaBuild},
)
