"""Runs each case in a process of its own, so that crashes, hangs, plans and torch's own caches stay apart.

The processes are forks of a server that has imported torch and done nothing else. So each starts in milliseconds and
from the same state, whatever the tests before it did.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from tests.cases.registry import T
from tests.cases.ways import Outcome, Way
from tests.processes import TIMEOUT, ProcessDiedError, exit_as_the_interpreter_does, expect_end


def run_case(name: str, way: Way, *, extension: Path | None = None) -> Outcome:
    """What a case gives when it runs in a process of its own.

    A process in which something was captured is followed to its very end; one of eager's, which takes no less time for
    that and shows nothing of backbind, only until it gave the outcome.

    Args:
        name: the case's.
        way: how its backwards run.
        extension: the compiled extension.cpp; for cases that need it.

    Raises:
        ProcessDiedError: the process ended without an outcome, or badly after it, or did not end.
    """
    call = partial(_run_preloaded, name, way, extension)
    return run_call(call, exits_fully=way is not Way.EAGER)


def run_call(call: Callable[[], T], *, timeout: float = TIMEOUT, exits_fully: bool = True) -> T:
    """What a call gives in a process of its own. The call must be picklable, and so must its result.

    Args:
        call: what the process is for.
        timeout: seconds until it counts as hanging, before the result and again after it.
        exits_fully: whether it ends as a program does, with threads, functions of atexit and destructors; otherwise at
            once.

    Raises:
        ProcessDiedError: the process ended without a result, or badly after it, or hung.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.cases.preloaded"])
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder, receiver:
        output = Path(folder, "output")
        process = context.Process(target=_serve, args=(call, sender, output, timeout, exits_fully))
        process.start()
        sender.close()
        try:
            if not receiver.poll(timeout):
                raise ProcessDiedError(f"no outcome in {timeout} s")
            result: T = receiver.recv()
            expect_end(process, "gave its outcome", timeout)
        except EOFError:
            process.join()
            raise ProcessDiedError(f"ended with exit code {process.exitcode}\n{_said(output)}") from None
        except ProcessDiedError as error:
            raise ProcessDiedError(f"{error}\n{_said(output)}") from None
        finally:
            process.kill()
            process.join()
    return result


def _run_preloaded(name: str, way: Way, extension: Path | None) -> Outcome:
    from tests.cases import preloaded

    return preloaded.run(name, way, extension)


def _serve(
    call: Callable[[], object], sender: Connection, output: Path, timeout: float, exits_fully: bool
) -> None:
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    faulthandler.enable(file=descriptor)
    faulthandler.dump_traceback_later(timeout * 0.5, file=descriptor)
    sender.send(call())
    if exits_fully:
        exit_as_the_interpreter_does()
    os._exit(0)


def _said(output: Path) -> str:
    return output.read_text(errors="replace")[-4000:] if output.exists() else ""
