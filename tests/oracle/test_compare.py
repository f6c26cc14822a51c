"""The comparison sees what it is there to see, and nothing else."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import pytest
import torch

from tests.oracle.compare import difference, tensor_difference
from tests.oracle.outcome import Outcome, outcome_of


def _value(number: float = 1.5) -> torch.Tensor:
    return torch.full((2, 3), number, dtype=torch.float64)


def _raised(error: Exception) -> Outcome:
    def fail() -> None:
        raise error

    return outcome_of(fail)


def _nan(payload: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000000 | payload))[0])


LAYOUTS = {
    "dense": _value,
    "empty": lambda: torch.empty(0, 3),
    "scalar": lambda: torch.tensor(2.0),
    "expanded": lambda: torch.tensor(2.0).expand(3),
    "complex": lambda: torch.full((2,), 1 + 2j),
    "lazily conjugated": lambda: torch.full((2,), 1 + 2j).conj(),
    "integer": lambda: torch.arange(3),
    "bool": lambda: torch.tensor([True, False]),
    "half": lambda: _value().half(),
    "COO": lambda: _value().to_sparse(),
    "CSR": lambda: _value().to_sparse_csr(),
    "BSC": lambda: torch.ones(2, 2).to_sparse_bsc((1, 1)),
    "MKLDNN": lambda: torch.ones(2, 2).to_mkldnn(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "NaN of any payload": lambda: torch.tensor([_nan(1), 1.0], dtype=torch.float64),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:Sparse ")
@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_equal_tensors_have_no_difference(make: Callable[[], torch.Tensor]) -> None:
    assert tensor_difference(make(), make()) == ""


def test_nans_are_one() -> None:
    left, right = (torch.tensor([_nan(payload), 1.0], dtype=torch.float64) for payload in (1, 2))
    assert left.view(torch.int64)[0] != right.view(torch.int64)[0]
    assert tensor_difference(left, right) == ""


DIFFERENT = {
    "dtype": (_value(), _value().float(), "expected dtype torch.float64, got torch.float32"),
    "shape": (_value(), _value()[:1], "expected shape (2, 3), got (1, 3)"),
    "strides": (_value(), _value().t().contiguous().t(), "expected strides (3, 1), got (1, 2)"),
    "layout": (_value(), _value().to_sparse(), "expected layout torch.strided, got torch.sparse_coo"),
    "None": (None, _value(), "expected None, got a tensor"),
    "not None": (_value(), None, "expected a tensor, got None"),
    "conjugation": (
        torch.full((2,), 1 + 2j).conj(),
        torch.full((2,), 1 - 2j),
        "expected the same lazy conjugation and negation",
    ),
    "last bit": (
        _value(1.5),
        _value(math.nextafter(1.5, 2)),
        "6 of 6 elements differ, first at (0, 0): expected 1.5, got 1.5000000000000002",
    ),
    "sign of zero": (
        _value(0.0),
        _value(-0.0),
        "6 of 6 elements differ, first at (0, 0): expected 0.0, got -0.0",
    ),
    "NaN": (_value(), _value(math.nan), "6 of 6 elements differ, first at (0, 0): expected 1.5, got nan"),
    "integer": (
        torch.arange(3),
        torch.tensor([0, 1, 3]),
        "1 of 3 elements differ, first at (2,): expected 2, got 3",
    ),
    "imaginary part": (
        torch.tensor([1 + 2j]),
        torch.tensor([1 + 3j]),
        "1 of 2 elements differ, first at (0, 1): expected 2.0, got 3.0",
    ),
    "value of a sparse tensor": (
        _value(1).to_sparse(),
        _value(2).to_sparse(),
        "part 1: 6 of 6 elements differ, first at (0,): expected 1.0, got 2.0",
    ),
}


@pytest.mark.parametrize(("left", "right", "expected"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_difference_is_named(left: torch.Tensor | None, right: torch.Tensor | None, expected: str) -> None:
    assert tensor_difference(left, right) == expected


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_parts_of_nested_tensors_are_compared() -> None:
    left, right = (torch.nested.nested_tensor([torch.ones(2), torch.ones(size)]) for size in (3, 4))
    assert tensor_difference(left, right) == "part 1: expected shape (3,), got (4,)"


def test_the_position_of_a_gradient_is_named() -> None:
    found = difference(Outcome((_value(), None)), Outcome((_value(), _value())))
    assert found == "gradient 1: expected None, got a tensor"


def test_the_number_of_gradients_counts() -> None:
    assert difference(Outcome((None,)), Outcome((None, None))) == "expected 1 gradients, got 2"


def test_equal_exceptions_have_no_difference() -> None:
    assert difference(_raised(ValueError("a")), _raised(ValueError("a"))) == ""


@pytest.mark.parametrize(
    ("expected", "actual", "text"),
    [
        (_raised(ValueError("a")), _raised(ValueError("b")), "expected ValueError('a'), got ValueError('b')"),
        (_raised(ValueError("a")), _raised(TypeError("a")), "expected ValueError('a'), got TypeError('a')"),
        (_raised(ValueError("a")), Outcome((None,)), "expected ValueError('a'), got gradients"),
        (Outcome((None,)), _raised(ValueError("a")), "expected gradients, got ValueError('a')"),
    ],
)
def test_unlike_exceptions_differ(expected: Outcome, actual: Outcome, text: str) -> None:
    assert difference(expected, actual) == text


def test_the_graph_behind_a_gradient_counts_if_asked() -> None:
    tracked = _value().requires_grad_() * 1
    assert difference(Outcome((tracked,)), Outcome((tracked.detach(),))) == ""
    assert difference(Outcome((tracked,)), Outcome((tracked.detach(),)), history=True) == (
        "gradient 0: expected a graph that ends in MulBackward0, got no graph"
    )
