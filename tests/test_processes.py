"""What goes wrong in a process that a test starts is seen, also after the process gave its outcome."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import time
from collections.abc import Callable

import pytest

from tests.processes import ProcessDiedError, expect_end, expect_end_of_fork, run_python

_ENDINGS = {
    "crashes at exit": ("atexit.register(signal.raise_signal, signal.SIGSEGV)", "ended with exit code -11"),
    "leaves at exit": ("atexit.register(os._exit, 3)", "ended with exit code 3"),
    "aborts in a thread": (
        "threading.Thread(target=lambda: (threading.main_thread().join(), os.abort())).start()",
        "ended with exit code -6",
    ),
    "hangs at exit": ("atexit.register(time.sleep, 1000)", "no end in 3.0 s"),
}
"""What a program does last, and how that is told."""


@pytest.mark.parametrize(("last", "told"), _ENDINGS.values(), ids=_ENDINGS)
def test_a_program_that_ends_badly_is_an_error(last: str, told: str) -> None:
    program = f"import atexit, os, signal, threading, time; print('the outcome', flush=True); {last}"
    with pytest.raises(ProcessDiedError, match=f"^{re.escape(told)}\nthe outcome\n"):
        run_python("-c", program, timeout=3.0)


def test_a_program_that_ends_well_gives_what_it_said() -> None:
    assert run_python("-c", "import os; print(os.environ['WORD'])", env={"WORD": "it"}).stdout == "it\n"


def test_other_statuses_are_allowed_by_number() -> None:
    assert run_python("-c", "raise SystemExit(1)", statuses=(0, 1)).returncode == 1
    with pytest.raises(ProcessDiedError, match=r"ended with exit code 2\n"):
        run_python("-c", "raise SystemExit(2)", statuses=(0, 1))


def _sleep() -> None:
    time.sleep(1000)


def _leave() -> None:
    os._exit(4)


def _return() -> None:
    pass


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (_leave, "said a word, and then ended with exit code 4"),
        (_sleep, "said a word, and then did not end in 0.5 s"),
    ],
)
def test_a_child_that_ends_badly_is_an_error(call: Callable[[], None], told: str) -> None:
    child = multiprocessing.get_context("fork").Process(target=call)
    child.start()
    with pytest.raises(ProcessDiedError, match=f"^{re.escape(told)}$"):
        expect_end(child, "said a word", timeout=0.5 if call is _sleep else 60)
    assert not child.is_alive()


def test_a_child_that_ends_well_is_none() -> None:
    child = multiprocessing.get_context("fork").Process(target=_return)
    child.start()
    expect_end(child, "said a word")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("os._exit(5)", "the fork ended with exit code 5"),
        ("signal.raise_signal(signal.SIGKILL)", "the fork ended with exit code -9"),
        ("time.sleep(1000)", "the fork did not end in 0.5 s"),
    ],
)
def test_a_fork_that_ends_badly_is_an_error(program: str, told: str) -> None:
    child = _fork(program)
    with pytest.raises(ProcessDiedError, match=f"^{re.escape(told)}$"):
        expect_end_of_fork(child, timeout=0.5 if "sleep" in program else 60)


def test_a_fork_that_ends_well_is_none() -> None:
    expect_end_of_fork(_fork("os._exit(0)"))


def _fork(program: str) -> int:
    child = os.fork()
    if child == 0:
        try:
            exec(program, {"os": os, "signal": signal, "time": time})
        finally:
            os._exit(99)
    return child
