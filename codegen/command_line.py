"""What every command line here does alike: it ends in words or in silence where its output is not wanted any more."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

STOPPED_BY_READER = 141
STOPPED_BY_USER = 130
"""What a shell reports of a program that the signals SIGPIPE and SIGINT end."""


def run_command(main: Callable[[], int]) -> int:
    """The exit code of ``main``, which prints.

    Whoever reads the output may close it early (``| head``), or press Ctrl-C: neither is worth a traceback. A character
    that the output's encoding lacks is written as an escape.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        code = main()
        # Not left to the interpreter, which can only complain.
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STOPPED_BY_READER
    except KeyboardInterrupt:
        return STOPPED_BY_USER
    return code
