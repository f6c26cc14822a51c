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

TIMEOUT = 120.0
"""Seconds. Only a process that waits for ever takes that long."""


class CaseDiedError(Exception):
    """The process of a case crashed or hung."""


def run_case(name: str, way: Way, *, extension: Path | None = None) -> Outcome:
    """What a case gives when it runs in a process of its own.

    Args:
        name: the case's.
        way: how its backwards run.
        extension: the compiled extension.cpp; for cases that need it.

    Raises:
        CaseDiedError: the process ended without an outcome, or did not end.
    """
    return run_call(partial(_run_preloaded, name, way, extension))


def run_call(call: Callable[[], T], *, timeout: float = TIMEOUT) -> T:
    """What a call gives in a process of its own. The call must be picklable, and so must its result.

    Raises:
        CaseDiedError: the process ended without a result, or not within ``timeout`` seconds.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.cases.preloaded"])
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder, receiver:
        output = Path(folder, "output")
        process = context.Process(target=_serve, args=(call, sender, output, timeout))
        process.start()
        sender.close()
        try:
            if not receiver.poll(timeout):
                raise CaseDiedError(f"no outcome in {timeout} s\n{_said(output)}")
            result: T = receiver.recv()
        except EOFError:
            process.join()
            raise CaseDiedError(f"ended with exit code {process.exitcode}\n{_said(output)}") from None
        finally:
            process.kill()
            process.join()
    return result


def _run_preloaded(name: str, way: Way, extension: Path | None) -> Outcome:
    from tests.cases import preloaded

    return preloaded.run(name, way, extension)


def _serve(call: Callable[[], object], sender: Connection, output: Path, timeout: float) -> None:
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    faulthandler.enable(file=descriptor)
    faulthandler.dump_traceback_later(timeout * 0.5, file=descriptor)
    sender.send(call())
    # Threads that hang are no reason to wait, and what happens after the outcome is no part of the case.
    os._exit(0)


def _said(output: Path) -> str:
    return output.read_text(errors="replace")[-4000:] if output.exists() else ""
