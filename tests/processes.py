"""Processes that tests start. One that gave its outcome and then dies or hangs is an error like one that gave none.

What goes wrong after the outcome (at exit, in a destructor, in another thread) shows in the exit status alone, so
everything here asks for it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NoReturn

TIMEOUT = 120.0
"""Seconds. Only a process that waits for ever takes that long."""

_SAID = 4000
"""Characters of what a process said that an error repeats: the last ones."""


class ProcessDiedError(Exception):
    """A process crashed, hung, or ended with a status that tells of an error."""


def run_python(
    *arguments: str | Path,
    timeout: float = TIMEOUT,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    statuses: Sequence[int] = (0,),
) -> subprocess.CompletedProcess[str]:
    """Run this Python on a command line, to the end of the process.

    Args:
        arguments: what follows the interpreter, such as ``-c`` and a program.
        timeout: seconds until a process counts as hanging.
        cwd: the folder that it runs in.
        env: what its environment has beside this one's, or instead.
        statuses: the exit statuses that are no error.

    Raises:
        ProcessDiedError: it ended with another status, or did not end.
    """
    command = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, **(env or {})}
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ProcessDiedError(f"no end in {timeout} s\n{_text(error.stdout)}{_text(error.stderr)}") from None
    if done.returncode not in statuses:
        raise ProcessDiedError(
            f"ended with exit code {done.returncode}\n{_text(done.stdout)}{_text(done.stderr)}"
        )
    return done


def exit_as_the_interpreter_does() -> NoReturn:
    """End this process with everything that comes at the end of a program, which a child of multiprocessing leaves out.

    That is: threads are waited for, functions of atexit run, objects die, and so do the statics of all libraries.
    """
    ctypes.pythonapi.Py_Exit(0)
    raise AssertionError("Py_Exit returned")


def expect_end(process: BaseProcess, after: str, timeout: float = TIMEOUT) -> None:
    """Wait until a process of multiprocessing ends, and end it where it does not.

    Args:
        process: one that was started.
        after: what it did before, for the error.
        timeout: seconds until it counts as hanging.

    Raises:
        ProcessDiedError: its status is not zero, or it did not end.
    """
    process.join(timeout)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise ProcessDiedError(f"{after}, and then did not end in {timeout} s")
    if process.exitcode != 0:
        raise ProcessDiedError(f"{after}, and then ended with exit code {process.exitcode}")


def expect_end_of_fork(child: int, timeout: float = TIMEOUT) -> None:
    """The same for a child of ``os.fork``."""
    deadline = time.monotonic() + timeout
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise ProcessDiedError(f"the fork did not end in {timeout} s")
        time.sleep(0.001)
    code = os.waitstatus_to_exitcode(ended[1])
    if code != 0:
        raise ProcessDiedError(f"the fork ended with exit code {code}")


def _text(said: str | bytes | None) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said or ""
    return text[-_SAID:]
