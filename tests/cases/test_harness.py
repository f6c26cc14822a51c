"""The harness itself: it notices what cases are there to show."""

from __future__ import annotations

import math
import os
import signal
import time

import pytest
import torch

from tests.cases.isolation import CaseDiedError, run_call
from tests.cases.observation import difference, observed
from tests.cases.registry import all_cases, case
from tests.cases.values import leaf, raised_by


def _crashes() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _hangs() -> None:
    time.sleep(1000)


def _leaves() -> None:
    os._exit(3)


def _where_it_runs() -> tuple[int, int]:
    from tests.cases import preloaded

    return preloaded.SERVER, os.getpid()


@pytest.mark.parametrize(("call", "said"), [(_crashes, "exit code -11"), (_leaves, "exit code 3")])
def test_a_process_that_dies_is_an_error(call: object, said: str) -> None:
    assert callable(call)
    with pytest.raises(CaseDiedError, match=said):
        run_call(call)


def test_a_process_that_hangs_is_an_error() -> None:
    with pytest.raises(CaseDiedError, match=r"no outcome in 8.0 s[\s\S]*_hangs"):
        run_call(_hangs, timeout=8.0)


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
