"""What it costs to compile the extension, cold and after a change, beside stock torchgen's Functions.cpp.

The peer is the single C++ file that the generator in the torch wheel emits for the same nodes, compiled with
g++ -O2 against the same headers in the same run. Its generation is not counted; neither is ours.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from codegen.torch_install.locate import TorchInstall, locate_torch
from tools.build_support.configure import Build, configure
from tools.build_support.flags import python_include
from tools.build_support.options import REPOSITORY, BuildOptions, Environment, job_count

# Run in a process of its own, because torchgen keeps what it parsed in memory. With autograd "disabled" it
# emits the nodes and leaves out the variable types.
_GENERATE_PEER = """
import sys
from torchgen.packaged.autograd.gen_autograd import gen_autograd
from torchgen.selective_build.selector import SelectiveBuilder
native, tags, out, autograd = sys.argv[1:]
gen_autograd(native, tags, out, autograd, SelectiveBuilder.get_nop_selector(), disable_autograd=True)
"""


@dataclass(frozen=True)
class Measurement:
    """One row of the table.

    Attributes:
        name: what was run.
        cpu_seconds: user and system time of everything that it started.
        wall_seconds: from start to end.
    """

    name: str
    cpu_seconds: float
    wall_seconds: float


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/bench.py build", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--no-peer", action="store_true", help="leave stock torchgen's Functions.cpp out")
    parser.add_argument("--no-pch", action="store_true", help="build without the precompiled header")
    parsed = parser.parse_args(arguments)
    environment = Environment.read()
    jobs = job_count(BuildOptions(), environment)
    with tempfile.TemporaryDirectory(prefix="backbind-bench-") as name:
        work = Path(name)
        build = configure(BuildOptions(), environment)
        rows = measure_ours(build, work, jobs, precompiled_header=not parsed.no_pch)
        if not parsed.no_peer:
            rows.append(measure_peer(locate_torch(), environment, work))
    if parsed.json:
        print(
            json.dumps(
                {"jobs": jobs, "compiler": build.compiler, "rows": [asdict(row) for row in rows]}, indent=2
            )
        )
    else:
        show(rows, jobs, build)
    return 0


def measure_ours(build: Build, work: Path, jobs: int, precompiled_header: bool) -> list[Measurement]:
    """Build in an empty folder, then after a change to one (copied) shard, then once more."""
    generated = work / "generated"
    shutil.copytree(build.generated, generated)
    command = [sys.executable, str(REPOSITORY / "tools" / "build.py"), "--no-place", "--jobs", str(jobs)]
    command += ["--build-dir", str(work / "build"), "--generated", str(generated)]
    if not precompiled_header:
        command.append("--no-pch")
    rows = [_measure("backbind, from nothing", lambda: _run(command))]
    shard = max((generated / "cpp").glob("*.cpp"), key=lambda path: path.stat().st_size)
    with shard.open("a", encoding="utf-8") as file:
        file.write("// one formula changed\n")
    rows.append(_measure("backbind, one formula changed (largest shard)", lambda: _run(command)))
    rows.append(_measure("backbind, nothing changed", lambda: _run(command)))
    return rows


def measure_peer(torch: TorchInstall, environment: Environment, work: Path) -> Measurement:
    """Generate stock torchgen's Functions.cpp and compile it."""
    autograd = torch.derivatives_yaml.parent
    out = work / "peer"
    out.mkdir()
    inputs = (torch.native_functions_yaml, torch.tags_yaml, out, autograd)
    _run([sys.executable, "-c", _GENERATE_PEER, *map(str, inputs)])
    command = [*environment.cxx, "-std=c++20", "-O2", "-fPIC", f"-I{torch.include}"]
    command += [f"-I{torch.include / 'torch' / 'csrc' / 'api' / 'include'}", f"-I{python_include()}"]
    command += ["-c", str(out / "Functions.cpp"), "-o", str(out / "Functions.o")]
    return _measure("stock torchgen's Functions.cpp, g++ -O2", lambda: _run(command))


def show(rows: list[Measurement], jobs: int, build: Build) -> None:
    peer = next((row for row in rows if row.name.startswith("stock")), None)
    table = Table(title=f"Build of the extension: {jobs} jobs, torch {build.torch.version}, {build.compiler}")
    table.add_column("what")
    table.add_column("CPU s", justify="right")
    table.add_column("wall s", justify="right")
    table.add_column("CPU / stock", justify="right")
    for row in rows:
        ratio = f"{row.cpu_seconds / peer.cpu_seconds:.2f}" if peer else ""
        table.add_row(row.name, f"{row.cpu_seconds:.1f}", f"{row.wall_seconds:.1f}", ratio)
    Console().print(table)


def _measure(name: str, run: Callable[[], None]) -> Measurement:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    run()
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Measurement(name, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def _run(command: list[str]) -> None:
    # What the command prints goes to the error stream, so that the output is the result alone.
    subprocess.run(command, check=True, stdout=sys.stderr, cwd=REPOSITORY)
