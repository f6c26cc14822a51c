"""What a sanitizer must report is reported: deliberate faults in a small library, loaded as the extension is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.build_support.options import Environment
from tools.build_support.sanitizers import SANITIZERS
from tools.sanitize import run_sanitized

FAULTS = {
    "heap overflow": (
        "address",
        "ERROR: AddressSanitizer: heap-buffer-overflow",
        "int* four = new int[4]; four[zero + 4] = 1; delete[] four;",
    ),
    "use after free": (
        "address",
        "ERROR: AddressSanitizer: heap-use-after-free",
        "volatile int* number = new int(1); delete number; *number = 2;",
    ),
    "use after return": (
        "address",
        "ERROR: AddressSanitizer: stack-use-after-return",
        "volatile int* local = address_of_a_local(); *local = 2;",
    ),
    "undefined behaviour": (
        "address",
        "runtime error: signed integer overflow",
        "volatile int most = 0x7fffffff; most = most + 1 + zero;",
    ),
    "race": (
        "thread",
        "WARNING: ThreadSanitizer: data race",
        "std::thread first([] { ++counter; }), second([] { ++counter; }); first.join(); second.join();",
    ),
    "locks in another order": (
        "thread",
        "WARNING: ThreadSanitizer: lock-order-inversion",
        "both(one, two); both(two, one);",
    ),
}
"""By name: the sanitizer, what it reports, and statements of C++."""

_LIBRARY = """
#include <mutex>
#include <thread>
volatile int zero = 0;
int counter = 0;
std::mutex one, two;
__attribute__((noinline)) volatile int* address_of_a_local() {{
  volatile int local = 1;
  volatile int* volatile address = &local;
  return address;
}}
void both(std::mutex& first, std::mutex& second) {{
  std::lock_guard outer(first);
  std::lock_guard inner(second);
}}
extern "C" void fault() {{ {fault} }}
extern "C" void no_fault() {{
  int* four = new int[4];
  four[zero + 3] = 1;
  delete[] four;
  auto guarded = [] {{
    both(one, two);
    std::lock_guard lock(one);
    ++counter;
  }};
  std::thread first(guarded), second(guarded);
  first.join();
  second.join();
}}
"""
_CALL = "import ctypes, sys; getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])()"
_CALL_IN_A_FORK = f"""
import os
if os.fork() == 0:
    {_CALL}
    os._exit(0)
os.wait()  # and whatever it gave
"""


@pytest.fixture(scope="module", params=FAULTS)
def fault(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, Path]:
    """The sanitizer, its report, and the library with the fault."""
    sanitizer, report, statements = FAULTS[request.param]
    folder = tmp_path_factory.mktemp("fault")
    source, library = folder / "fault.cpp", folder / "fault.so"
    source.write_text(_LIBRARY.format(fault=statements))
    compiler = Environment.read().cxx
    flags = ["-std=c++20", "-O1", "-w", "-g1", "-fPIC", "-shared"]
    flags += [*SANITIZERS[sanitizer].compile, *SANITIZERS[sanitizer].link]
    subprocess.run([*compiler, *flags, str(source), "-o", str(library)], env=_plain(), check=True)
    return sanitizer, report, library


@pytest.mark.parametrize("program", [_CALL, _CALL_IN_A_FORK], ids=["here", "in a fork"])
def test_a_fault_is_reported(fault: tuple[str, str, Path], program: str) -> None:
    sanitizer, report, library = fault
    command = [sys.executable, "-c", program, str(library), "fault"]
    outcome = run_sanitized(sanitizer, command, Environment.read().cxx, _plain())
    assert not outcome.clean
    assert len(outcome.reports) == 1
    assert report in outcome.reports[0]


def test_no_fault_no_report(fault: tuple[str, str, Path]) -> None:
    sanitizer, _, library = fault
    command = [sys.executable, "-c", _CALL, str(library), "no_fault"]
    assert run_sanitized(sanitizer, command, Environment.read().cxx, _plain()).clean


def _plain() -> dict[str, str]:
    """The environment without what a sanitized run of these tests themselves adds to it."""
    added = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "PYTHONMALLOC")
    return {name: value for name, value in os.environ.items() if name not in added}
