"""A fixture for tests of captured backwards: each begins without plans and counts, with nothing switched on."""

from __future__ import annotations

from collections.abc import Iterator

import backbind
import pytest
import torch


@pytest.fixture(autouse=True)
def clean_process() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    backbind.reset()
    yield
    backbind.disable()
    backbind.reset()
    torch.set_num_threads(threads)
