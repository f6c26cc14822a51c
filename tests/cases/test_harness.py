"""The harness itself: it notices what cases are there to show."""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import signal
import threading
import time
from collections.abc import Callable

import pytest
import torch

from tests.cases.isolation import run_call
from tests.cases.observation import difference, observed
from tests.cases.registry import all_cases, case
from tests.cases.values import leaf, raised_by
from tests.processes import ProcessDiedError


def _crashes() -> None:
    # Raised in this very thread, so that it arrives before the call returns.
    signal.raise_signal(signal.SIGSEGV)


def _hangs() -> None:
    time.sleep(1000)


def _leaves() -> None:
    os._exit(3)


def _crashes_at_exit() -> str:
    atexit.register(signal.raise_signal, signal.SIGSEGV)
    return "the outcome"


def _leaves_at_exit() -> str:
    atexit.register(os._exit, 3)
    return "the outcome"


class _AbortsWhenItDies:
    def __init__(self) -> None:
        # Nobody but the collector finds it.
        self.itself = self

    def __del__(self) -> None:
        os.abort()


def _aborts_in_a_destructor() -> str:
    _AbortsWhenItDies()
    return "the outcome"


def _aborts_in_a_static_destructor() -> str:
    library = ctypes.CDLL(None)
    # Called when the libraries' statics are destroyed, after the interpreter's end.
    assert library.__cxa_atexit(library.abort, None, None) == 0
    return "the outcome"


def _aborts_in_a_thread() -> str:
    def wait_for_the_end() -> None:
        threading.main_thread().join()
        os.abort()

    threading.Thread(target=wait_for_the_end).start()
    return "the outcome"


def _aborts_in_a_daemon() -> str:
    started = threading.Event()

    def abort_later() -> None:
        started.set()
        time.sleep(0.2)
        os.abort()

    threading.Thread(target=abort_later, daemon=True).start()
    started.wait()
    # Keeps the process from ending before the thread ends it.
    atexit.register(time.sleep, 1000)
    return "the outcome"


def _hangs_at_exit() -> str:
    atexit.register(time.sleep, 1000)
    return "the outcome"


def _hangs_in_a_thread() -> str:
    threading.Thread(target=time.sleep, args=(1000,)).start()
    return "the outcome"


def _ends_well() -> str:
    return "the outcome"


def _where_it_runs() -> tuple[int, int]:
    from tests.cases import preloaded

    return preloaded.SERVER, os.getpid()


@pytest.mark.parametrize(("call", "said"), [(_crashes, "exit code -11"), (_leaves, "exit code 3")])
def test_a_process_that_dies_is_an_error(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ProcessDiedError, match=f"^ended with {said}\n"):
        run_call(call)


def test_a_process_that_hangs_is_an_error() -> None:
    with pytest.raises(ProcessDiedError, match=r"no outcome in 8.0 s[\s\S]*_hangs"):
        run_call(_hangs, timeout=8.0)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (_crashes_at_exit, -signal.SIGSEGV),
        (_leaves_at_exit, 3),
        (_aborts_in_a_destructor, -signal.SIGABRT),
        (_aborts_in_a_static_destructor, -signal.SIGABRT),
        (_aborts_in_a_thread, -signal.SIGABRT),
        (_aborts_in_a_daemon, -signal.SIGABRT),
    ],
)
def test_a_process_that_dies_after_its_outcome_is_an_error(call: Callable[[], object], code: int) -> None:
    with pytest.raises(ProcessDiedError, match=f"^gave its outcome, and then ended with exit code {code}\n"):
        run_call(call)


@pytest.mark.parametrize("call", [_hangs_at_exit, _hangs_in_a_thread])
def test_a_process_that_hangs_after_its_outcome_is_an_error(call: Callable[[], object]) -> None:
    with pytest.raises(ProcessDiedError, match=r"^gave its outcome, and then did not end in 3.0 s\n"):
        run_call(call, timeout=3.0)


@pytest.mark.parametrize("exits_fully", [True, False])
def test_a_process_that_ends_well_gives_its_outcome(exits_fully: bool) -> None:
    assert run_call(_ends_well, exits_fully=exits_fully) == "the outcome"


def test_cases_run_in_forks_of_a_server_that_is_ready() -> None:
    """Otherwise each of them would import torch again, for seconds."""
    server, process = run_call(_where_it_runs)
    again, other = run_call(_where_it_runs)
    assert server == again
    assert len({server, process, other, os.getpid()}) == 4


def test_every_case_says_what_it_is_about() -> None:
    cases = all_cases().values()
    assert [one.name for one in cases if not one.about.endswith(".")] == []
    assert sum(one.report is not None for one in cases) == 42


def test_two_cases_of_one_name() -> None:
    name = next(iter(all_cases())).replace("-", "_")

    def program(run_backward: object) -> dict[str, object]:
        return {}

    program.__name__ = name
    with pytest.raises(ValueError, match="two cases are called"):
        case()(program)


def _base() -> torch.Tensor:
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    "other",
    [
        _base() + 1e-7,
        _base().double(),
        _base().t().contiguous().t(),
        _base()[:1],
        _base().requires_grad_(),
        _base().requires_grad_() * 1,
        _base().add_(0),
        _base().view(2, 2),
        torch.nn.Parameter(_base(), requires_grad=False),
        _base().to_sparse(),
        [_base()],
        None,
    ],
    ids=range(12),
)
def test_differences_of_tensors_are_seen(other: object) -> None:
    assert difference(observed(_base()), observed(other))
    assert not difference(observed(other), observed(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, 1e-12),
        (1, 1.0),
        (1, True),
        ("a", "b"),
        ([1], [1, 2]),
        ([1], (1,)),
        (["a", "b"], ["b", "a"]),
        ({"a": 1}, {"b": 1}),
        ({"a": [None]}, {"a": [0]}),
        (math.nan, 1.0),
    ],
)
def test_differences_of_plain_results_are_seen(one: object, other: object) -> None:
    assert difference(observed(one), observed(other))
    assert not difference(observed(one), observed(one))


def test_results_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(TypeError, match="a case returned a set"):
        observed({"a": {1, 2}})


def test_an_error_without_the_words_is_no_result() -> None:
    loss = leaf(3).sum()
    loss.backward(torch.ones(()))
    with pytest.raises(AssertionError, match="does not say"):
        raised_by(lambda action: action(), lambda: torch.ones(1).backward(), "something else")
