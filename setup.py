"""Lets pip build the extension with tools/build.py; the metadata stands in pyproject.toml."""

import shutil
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
from tools.build_support.errors import BuildError  # noqa: E402
from tools.build_support.options import BuildOptions  # noqa: E402
from tools.build_support.place import place, record_torch  # noqa: E402
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
    # Under build isolation torch lies in a temporary folder with another name each time. Building that in the
    # folder that the checkout's own builds use would make everything in it stale.
    isolated = installed_torch().site_packages.is_relative_to(tempfile.gettempdir())
    return BuildOptions(root=ROOT, build_dir=ROOT / "build" / "isolated" if isolated else None, place=place)


try:
    source = prepare_package(build_options(place=True)).parent
except BuildError as error:
    sys.exit(f"backbind: {error}")

if "bdist_wheel" in sys.argv:
    # setuptools packs whatever it finds here, files of earlier builds that are gone from the sources
    # included.
    shutil.rmtree(SETUPTOOLS_FOLDER, ignore_errors=True)

setup(
    package_dir={"": str(source.relative_to(ROOT))},
    # Templates lie in folders without __init__.py: packages all the same, with files in them.
    packages=find_namespace_packages(str(source), include=["backbind", "backbind.*"]),
    package_data={"": ["py.typed", "*.pyi", "*.json", "*.j2", "*.yaml"]},
    include_package_data=False,
    ext_modules=[Extension("backbind._C", sources=[])],
    options={"build": {"build_base": str(SETUPTOOLS_FOLDER.relative_to(ROOT))}},
    cmdclass={"build_ext": NinjaBuild},
)
