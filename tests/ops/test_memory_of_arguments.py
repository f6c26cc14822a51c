"""Tensors whose storage is smaller than their sizes and strides say are refused before any kernel reads them."""

from __future__ import annotations

import backbind
import pytest
import torch

from tests.ops.test_errors import message


def _without_memory() -> torch.Tensor:
    tensor = torch.ones(2, 3, dtype=torch.float64)
    tensor.untyped_storage().resize_(40)
    return tensor


@pytest.mark.parametrize("name", ["grads", "result"])
def test_a_tensor_whose_memory_was_freed(name: str) -> None:
    good, bad = torch.ones(2, 3, dtype=torch.float64), _without_memory()
    grad, result = (bad, good) if name == "grads" else (good, bad)
    tanh = backbind.ops.TanhBackward0
    for face in (tanh, tanh.delegate, tanh.overload):
        assert message(ValueError, lambda: face([grad], [True], result)) == (  # noqa: B023
            f"TanhBackward0: '{name}' with sizes [2, 3] and strides [3, 1] reaches 48 bytes into its storage, which "
            "holds 40; its memory was freed or made smaller"
        )


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_a_tensor_without_elements_needs_no_memory(shape: tuple[int, ...]) -> None:
    tensor = torch.ones(shape)
    tensor.untyped_storage().resize_(0)
    (result,) = backbind.ops.TanhBackward0([tensor], [True], tensor)
    assert result is not None
    assert result.shape == shape


def test_views_beyond_their_storage() -> None:
    base = torch.ones(12, dtype=torch.float64)
    view = base.as_strided((2, 3), (5, 1), 4)
    base.untyped_storage().resize_(8 * 11)
    grad = torch.ones(2, 3, dtype=torch.float64)
    assert message(ValueError, lambda: backbind.ops.TanhBackward0([grad], [True], view)) == (
        "TanhBackward0: 'result' with sizes [2, 3] and strides [5, 1] reaches 96 bytes into its storage, which holds "
        "88; its memory was freed or made smaller"
    )
