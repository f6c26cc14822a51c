"""Makes an installed torch, and the Python that it is installed for, a Bazel repository."""

_BUILD = """
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "torch",
    srcs = {libraries},
    hdrs = glob(["include/**/*.h", "include/**/*.hpp", "python/**/*.h"]),
    includes = ["include", "include/torch/csrc/api/include", "python"],
)

py_runtime(
    name = "runtime",
    interpreter_path = "{interpreter}",
    python_version = "PY3",
    stub_shebang = "#!{interpreter}",
)

py_runtime_pair(
    name = "runtimes",
    py3_runtime = ":runtime",
)

toolchain(
    name = "python_toolchain",
    toolchain = ":runtimes",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

_DEFINITIONS = """
EXTENSION = "{extension}"

DEFINES = [
    'BACKBIND_TORCH_VERSION=\\\\"{release}\\\\"',
]
"""

_PROBE = """
import importlib.util, pathlib, sysconfig
print(pathlib.Path(importlib.util.find_spec("torch").origin).parent)
print(sysconfig.get_path("include"))
print("_C" + sysconfig.get_config_var("EXT_SUFFIX"))
"""

_LIBRARIES = ["libc10.so", "libtorch_cpu.so", "libtorch.so", "libtorch_python.so"]

def _interpreter(context):
    named = context.os.environ.get("BACKBIND_PYTHON", "")
    if named:
        return named
    own = context.path(Label("@//:WORKSPACE")).dirname.get_child(".venv").get_child("bin").get_child("python")
    return str(own if own.exists else context.which("python3"))

def _torch_repository_impl(context):
    interpreter = _interpreter(context)
    result = context.execute([interpreter, "-c", _PROBE])
    if result.return_code != 0:
        fail("%s has no torch; run ./dev build once, or set BACKBIND_PYTHON to an interpreter that has it\n%s" % (interpreter, result.stderr))
    torch, python_include, extension = result.stdout.strip().split("\n")
    version = context.read(torch + "/version.py").split("__version__ = '")[1].split("'")[0]
    context.symlink(torch + "/include", "include")
    context.symlink(python_include, "python")
    for library in _LIBRARIES:
        context.symlink(torch + "/lib/" + library, "lib/" + library)
    libraries = repr(["lib/" + library for library in _LIBRARIES])
    context.file("BUILD", _BUILD.format(libraries = libraries, interpreter = interpreter))
    context.file("definitions.bzl", _DEFINITIONS.format(extension = extension, release = version.split("+")[0]))

torch_repository = repository_rule(
    implementation = _torch_repository_impl,
    environ = ["BACKBIND_PYTHON"],
    local = True,
)
