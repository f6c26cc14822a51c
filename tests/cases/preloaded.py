"""What the server of `tests.cases.isolation` imports once for all cases."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import torch
import torch._dynamo
import torch.utils.checkpoint

from tests.cases.registry import all_cases
from tests.cases.ways import Outcome, Way, run_here

torch.set_num_threads(1)
CASES = all_cases()

SERVER = os.getpid()
"""The process that imported this. A case that is not a fork of it starts slowly."""


# No collection in a fork looks at what all of them share; otherwise each copies hundreds of megabytes.
gc.freeze()


def run(name: str, way: Way, extension: Path | None) -> Outcome:
    """Run a case in this process."""
    if extension is not None:
        torch.ops.load_library(extension)
    return run_here(CASES[name], way)
