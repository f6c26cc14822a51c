"""What tests of replays share: torch as it has to be for two runs to be compared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def comparable_runs() -> Iterator[None]:
    threads, warns = torch.get_num_threads(), torch.is_warn_always_enabled()
    # Several threads would add up in the order in which they come to an end.
    torch.set_num_threads(1)
    # Warnings that torch gives once would be seen in the first run only.
    torch.set_warn_always(True)
    yield
    torch.set_num_threads(threads)
    torch.set_warn_always(warns)
