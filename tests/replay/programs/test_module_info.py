"""Gradients of torch's modules, by its own samples, are eager's under capture: natively and as a graph."""

from __future__ import annotations

import copy
import warnings
from functools import partial
from typing import Any

import backbind
import pytest
import torch
from torch.testing._internal.common_modules import ModuleInfo, module_db
from torch.utils._pytree import tree_leaves, tree_map

from tests.oracle.compare import tensor_difference

DTYPES = (torch.float32, torch.bfloat16, torch.complex64)

CASES = [
    pytest.param(info, dtype, training, id=f"{info.name}-{dtype}-{'training' if training else 'evaluation'}")
    for info in module_db
    for dtype in DTYPES
    if dtype in info.dtypes
    for training in ((True, False) if info.train_and_eval_differ else (True,))
]

SAMPLES = 4
"""Of one module; further ones differ in options of the forward."""


def _of_its_own(value: Any) -> Any:
    """A leaf in place of each tensor that can have a gradient."""
    if not isinstance(value, torch.Tensor):
        return value
    copied = value.detach().clone()
    return copied.requires_grad_() if copied.is_floating_point() or copied.is_complex() else copied


def _gradients(module: torch.nn.Module, sample: Any) -> list[torch.Tensor | None]:
    """Of two backwards in a row, so that the second one accumulates."""
    torch.manual_seed(0)
    module = copy.deepcopy(module)
    args, kwargs = tree_map(_of_its_own, (sample.args, sample.kwargs))
    leaves = [
        *(one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)),
        *module.parameters(),
    ]
    for _ in range(2):
        results = [one for one in tree_leaves(module(*args, **kwargs)) if isinstance(one, torch.Tensor)]
        roots = [one for one in results if one.requires_grad]
        if roots:
            torch.autograd.backward(roots, [torch.ones_like(one) for one in roots])
    return [leaf.grad for leaf in leaves]


@pytest.mark.parametrize(("info", "dtype", "training"), CASES)
def test_gradients_are_those_of_eager(info: ModuleInfo, dtype: torch.dtype, training: bool) -> None:
    inputs = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    for number, one in enumerate(inputs[:SAMPLES]):
        if one.forward_input is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            module = info.module_cls(*one.constructor_input.args, **one.constructor_input.kwargs).to(dtype)
            module.train(training)
            run = partial(_gradients, module, one.forward_input)
            try:
                expected = run()
            except (RuntimeError, NotImplementedError):
                continue  # torch has no such kernel
            for backend in ("native", "graph"):
                with backbind.capture(backend=backend):
                    actual = run()
                for left, right in zip(expected, actual, strict=True):
                    assert (left is None) == (right is None), (number, backend)
                    if left is not None and right is not None:
                        assert not tensor_difference(left, right), (number, backend)
                        assert left._version == right._version, (number, backend)
                        assert left.stride() == right.stride(), (number, backend)
