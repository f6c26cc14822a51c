"""Calls keep nothing: not their arguments, not their results, whether they succeed or fail."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import backbind
import pytest
import torch

from tests.ops.node_set import NODE_SET, NodeCase, tensors_of
from tests.ops.ways import WAYS, Way

_CALLS = 1000
_SLACK = 20
"""References that come and go with the interpreter's own caches; a leak adds one for each call."""


def _counts(values: Sequence[object]) -> list[int]:
    return [sys.getrefcount(value) for value in values]


def _grown(values: Sequence[object], call: Callable[[], object]) -> list[object]:
    """The values that are referred to more often after many calls."""
    call()
    before = _counts(values)
    for _ in range(_CALLS):
        call()
    return [
        value for value, old, new in zip(values, before, _counts(values), strict=True) if new > old + _SLACK
    ]


def _all_objects(arguments: Sequence[Any]) -> list[object]:
    return [*arguments, *tensors_of(arguments), None, True, False, torch.float64, torch.strided]


def _quietly(call: Callable[[], object], error: type[Exception]) -> Callable[[], object]:
    def run() -> None:
        with pytest.raises(error):
            call()

    return run


_SOME = tuple(
    case
    for case in NODE_SET
    if case.node
    in ("MulBackward0", "IndexBackward0", "CatBackward0", "GeluBackward0", "ForeachMulBackward1ScalarList")
)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("case", _SOME, ids=str)
def test_calls_keep_no_reference(case: NodeCase, way: Way) -> None:
    made = case.make()
    operator, grads, packed = made.operator, made.grads, made.packed
    objects = [operator, grads, *_all_objects([*packed, *grads])]
    assert _grown(objects, lambda: way.call(operator, grads, packed)) == []


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("case", _SOME, ids=str)
def test_failing_calls_keep_no_reference(case: NodeCase, way: Way) -> None:
    made = case.make()
    operator, grads, packed = made.operator, made.grads, made.packed
    wrong = object()
    objects = [operator, grads, wrong, *_all_objects([*packed, *grads])]
    for failing in (
        lambda: way.call(operator, grads, [*packed[:-1], wrong]),
        lambda: way.call(operator, grads, packed[:-1]),
        lambda: way.call(operator, [*grads, wrong], packed),  # type: ignore[list-item]
    ):
        assert _grown(objects, _quietly(failing, Exception)) == []


@pytest.mark.parametrize("case", _SOME, ids=str)
def test_pack_keeps_no_reference(case: NodeCase) -> None:
    made = case.make()
    node, packed = made.node, made.packed
    assert _grown([node, *_all_objects(packed)], lambda: backbind.pack(node)) == []
    assert _grown([node, made.operator], lambda: backbind.ops.for_node(node)) == []


def test_failing_packs_keep_no_reference() -> None:
    made = NODE_SET[0].make()
    node = made.node
    torch.autograd.grad(made.outputs, made.inputs, made.output_grads)
    assert _grown([node, made.inputs[0]], _quietly(lambda: backbind.pack(node), RuntimeError)) == []
    assert _grown([made.inputs[0]], _quietly(lambda: backbind.pack(made.inputs[0]), TypeError)) == []


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_tensors_die_with_their_last_user(case: NodeCase, way: Way) -> None:
    gc.disable()  # counting alone must be enough: no cycles
    try:
        made = case.make()
        operator, grads, packed = made.operator, made.grads, made.packed
        results = way.call(operator, grads, packed)
        watched = [weakref.ref(one) for one in tensors_of([grads, packed, list(made.inputs), results])]
        assert watched
        del made, grads, packed, results
        assert [one() for one in watched if one() is not None] == []
    finally:
        gc.enable()


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_storages_are_let_go(way: Way) -> None:
    """Tensors that only C++ holds are not counted by Python; their storage counts them."""
    made = next(case for case in NODE_SET if case.node == "MmBackward0").make()
    operator, grads, packed = made.operator, made.grads, made.packed
    storage = made.inputs[0].untyped_storage()._cdata
    before = torch._C._storage_Use_Count(storage)
    for _ in range(_CALLS):
        way.call(operator, grads, packed)
    assert torch._C._storage_Use_Count(storage) == before
