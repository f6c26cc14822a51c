"""Lists that change while they are converted are taken as they were, and objects that say they are tensors are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any
from unittest import mock

import backbind
import pytest
import torch

from tests.conftest import REPOSITORY
from tests.ops.changing_arguments import expected, names


@pytest.fixture(scope="module")
def endings() -> dict[str, str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "runtime")]),
    }
    process = subprocess.run(
        [sys.executable, "-m", "tests.ops.changing_arguments"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(process.stdout)
    return found


@pytest.mark.parametrize("name", list(names()), ids=" ".join)
def test_an_element_that_changes_its_list(name: tuple[str, str, str], endings: dict[str, str]) -> None:
    assert endings[" ".join(name)] == expected(*name)


def test_an_element_that_calls_the_operator_with_its_list() -> None:
    calls = 0

    class Element:
        def __index__(self) -> int:
            nonlocal calls
            calls += 1
            if calls < 4:
                assert view([torch.ones(2, 3)], [True], sizes)[0].shape == (2, 3)
                sizes.append(1)
            return 2

    view: Any = backbind.ops.ViewBackward0
    sizes: list[Any] = [Element(), 3]
    assert view([torch.ones(2, 3)], [True], sizes)[0].shape == (2, 3)
    assert calls == 4


@pytest.mark.parametrize("answer", ["text", 1.5, None, [1]], ids=repr)
def test_an_index_that_is_no_integer(answer: object) -> None:
    class Element:
        def __index__(self) -> object:
            return answer

    view: Any = backbind.ops.ViewBackward0
    with pytest.raises(TypeError) as caught:
        view([torch.ones(2)], [True], [2, Element()])
    assert str(caught.value) == (
        "ViewBackward0() argument 'self_sym_sizes': expected Sequence[int], got Element at position 1"
    )


def test_an_interrupt_while_converting_reaches_the_caller() -> None:
    class Element:
        def __index__(self) -> int:
            raise KeyboardInterrupt

    view: Any = backbind.ops.ViewBackward0
    for sizes in ([Element()], Element()):
        with pytest.raises(KeyboardInterrupt if isinstance(sizes, list) else TypeError):
            view([torch.ones(2)], [True], sizes)


@pytest.mark.parametrize("kind", [list, tuple])
def test_classes_of_lists_and_tuples_are_read_as_they_iterate(kind: type) -> None:
    class Counted(kind):  # type: ignore[misc]
        def __getitem__(self, position: object) -> object:
            raise AssertionError("not asked for")

        def __len__(self) -> int:
            return 10**6

    class Iterated(kind):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return iter((2, 3))

    view: Any = backbind.ops.ViewBackward0
    for sizes in (Counted((2, 3)), Iterated((5, 5, 5))):
        assert view([torch.ones(6)], [True], sizes)[0].shape == (2, 3)


@pytest.mark.parametrize("kind", [mock.Mock, mock.MagicMock])
def test_what_only_says_that_it_is_a_tensor(kind: type) -> None:
    stand_in = kind(spec=torch.Tensor)
    assert isinstance(stand_in, torch.Tensor)
    tanh: Any = backbind.ops.TanhBackward0
    for grads, result, text in (
        ([torch.ones(2)], stand_in, f"argument 'result': expected Tensor | None, got {kind.__name__}"),
        (
            [stand_in],
            torch.ones(2),
            f"argument 'grads': expected Sequence[Tensor | None], got {kind.__name__} at position 0",
        ),
    ):
        with pytest.raises(TypeError) as caught:
            tanh(grads, [True], result)
        assert str(caught.value) == f"TanhBackward0() {text}"
