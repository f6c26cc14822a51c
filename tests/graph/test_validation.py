"""What the engine makes of a gradient between two nodes: shape, dtype and device of the value that it belongs to."""

from __future__ import annotations

from collections.abc import Callable

import backbind
import pytest
import torch

from tests.graph.gradients import assert_traces, differences, eager_gradients, leaf

# -------------------------------------------------------------------------------------------------------- each kind


@pytest.mark.parametrize("reduce", [torch.amax, torch.amin], ids=["amax", "amin"])
def test_a_reduction_of_no_dimensions(reduce: Callable[..., torch.Tensor]) -> None:
    value = leaf()
    assert_traces(reduce(value, dim=-1), [value])


def test_a_gradient_of_another_dtype_than_its_value() -> None:
    value = leaf(5)
    assert_traces(value.sum(dtype=torch.float64), [value])


def test_a_value_of_no_dimensions_on_another_device() -> None:
    factor, other = leaf(), torch.empty(3, device="meta", requires_grad=True)
    loss = (factor * other).sum()
    assert backbind.trace(loss, [other])()[0].device == eager_gradients(loss, [other])[0].device  # type: ignore[union-attr]
    # The factor's gradient has to come to its device, which nothing can from there.
    with pytest.raises(NotImplementedError) as eager:
        eager_gradients(loss, [factor])
    with pytest.raises(NotImplementedError) as traced:
        backbind.trace(loss, [factor])()
    assert str(traced.value) == str(eager.value)


# ------------------------------------------------------------------------------------------------------- grad_dtype

GRAD_DTYPES = (torch.float64, torch.bfloat16, torch.float32, None)


@pytest.mark.parametrize("wanted", GRAD_DTYPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_leaf_says_the_dtype_of_its_gradient(dtype: torch.dtype, wanted: torch.dtype | None) -> None:
    value = torch.full((3,), 1 / 3, dtype=dtype, requires_grad=True)
    value.grad_dtype = wanted
    assert_traces((value.float() * 1.001).sum() + (value * 3).sum(dtype=torch.float64), [value])


@pytest.mark.parametrize("wanted", GRAD_DTYPES, ids=str)
def test_a_leaf_may_say_it_after_the_forward(wanted: torch.dtype | None) -> None:
    value = leaf(3)
    loss = (value * 1.1).double().sum()
    value.grad_dtype = wanted
    assert_traces(loss, [value])


@pytest.mark.parametrize("wanted", GRAD_DTYPES, ids=str)
def test_a_leaf_that_is_an_output_says_it(wanted: torch.dtype | None) -> None:
    value = leaf(1)
    value.grad_dtype = wanted
    assert_traces(value, [value])


@pytest.mark.parametrize("given", [torch.float64, torch.float16, torch.int64], ids=str)
def test_a_given_gradient_takes_the_dtype_of_its_output(given: torch.dtype) -> None:
    value = leaf(3)
    output, gradient = value * 1.1, torch.tensor([1, 2, 3], dtype=given)
    expected = torch.autograd.grad(output, [value], gradient, retain_graph=True)
    assert differences(backbind.trace(output, [value])(gradient), expected) == {}
