"""The operators between nodes: sums of gradients, and gradients fitted to their values."""

from __future__ import annotations

import backbind  # noqa: F401  (defines the operators)
import pytest
import torch

OPS = torch.ops.backbind


def test_an_undefined_gradient_counts_as_zero() -> None:
    one = torch.ones(2)
    assert OPS.sum_gradients(None, one) is one
    assert OPS.sum_gradients(one, None) is one
    assert OPS.sum_gradients(None, None) is None


def test_a_sum_is_the_sum() -> None:
    assert torch.equal(OPS.sum_gradients(torch.ones(2), torch.tensor([1.0, 2.0])), torch.tensor([2.0, 3.0]))


def test_sparse_and_dense_add_in_either_order() -> None:
    dense = torch.ones(3)
    sparse = torch.sparse_coo_tensor(torch.tensor([[1]]), torch.tensor([4.0]), (3,))
    expected = torch.tensor([1.0, 5.0, 1.0])
    assert torch.equal(OPS.sum_gradients(sparse, dense), expected)
    assert torch.equal(OPS.sum_gradients(dense, sparse), expected)


def test_a_gradient_is_summed_to_the_shape_of_its_value() -> None:
    valid = OPS.validate_grad(torch.ones(2, 3, 4), [3, 1], torch.float32)
    assert torch.equal(valid, torch.full((3, 1), 8.0))


def test_a_gradient_takes_the_dtype_of_its_value() -> None:
    assert OPS.validate_grad(torch.ones(2), [2], torch.float64).dtype is torch.float64


def test_a_gradient_keeps_its_dtype_where_any_will_do() -> None:
    assert OPS.validate_grad(torch.ones(2).double(), [2], None).dtype is torch.float64


def test_only_a_gradient_of_no_dimensions_changes_its_device() -> None:
    meta = torch.device("meta")
    assert OPS.validate_grad(torch.ones(2), [], torch.float32, meta).device == meta
    assert OPS.validate_grad(torch.ones(2), [2], torch.float32, meta).device == torch.device("cpu")


def test_a_gradient_that_is_valid_is_handed_through() -> None:
    gradient = torch.ones(2)
    assert OPS.validate_grad(gradient, [2], torch.float32) is gradient
    assert OPS.validate_grad(None, [2], torch.float32) is None


def test_a_gradient_that_cannot_be_reduced_is_refused() -> None:
    with pytest.raises(RuntimeError) as caught:
        OPS.validate_grad(torch.ones(2, 3), [2], torch.float32)
    message = "a gradient of shape [2, 3] cannot be reduced to the shape [2] of its value"
    assert str(caught.value).splitlines()[0] == message


def test_the_root_gradient_is_implicit_unless_given() -> None:
    given, implicit = torch.tensor(2.0), torch.tensor(1.0)
    assert OPS.root_gradient(given, implicit, [], torch.float32, 0) is given
    assert OPS.root_gradient(None, implicit, [], torch.float32, 0) is implicit
