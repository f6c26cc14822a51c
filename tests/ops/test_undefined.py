"""Gradients that are undefined or not wanted, and saved tensors that are gone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import backbind
import pytest
import torch
from torch import Tensor

from tests.ops.node_set import NODE_SET, Made, NodeCase, all_same_bits, run_node, tensors_of

_MOST_MASKS = 16


def masks(count: int) -> list[list[bool]]:
    return [list(mask) for mask in product((True, False), repeat=count)][:_MOST_MASKS]


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_undefined_gradients_in_every_position(case: NodeCase) -> None:
    """With any of its gradients undefined, an operator computes what the live node computes."""
    made = case.make()
    for present in masks(len(made.grads)):
        grads = [grad if keep else None for grad, keep in zip(made.grads, present, strict=True)]
        expected = run_node(made.node, grads)
        for face in (made.operator, made.operator.delegate, made.operator.overload):
            assert all_same_bits(face(grads, *made.packed), expected), f"{present}"


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_without_any_gradient_there_is_none(case: NodeCase) -> None:
    made = case.make()
    results = made.operator([None] * len(made.grads), *made.packed)
    assert results == [None] * len(made.node.next_functions)


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_gradients_that_are_not_wanted_come_back_as_none(case: NodeCase) -> None:
    made = case.make()
    _, *saved = made.packed
    everything = made.call()
    for mask in masks(len(made.operator.inputs)):
        for face in (made.operator, made.operator.delegate, made.operator.overload):
            results = face(made.grads, mask, *saved)
            wanted = _per_gradient(made, mask)
            assert len(results) == len(everything)
            for result, full, want in zip(results, everything, wanted, strict=True):
                if not want:
                    assert result is None
                elif full is not None and result is not None:
                    torch.testing.assert_close(result, full)


def _per_gradient(made: Made, mask: list[bool]) -> list[bool]:
    """The flags of the inputs, repeated for each element of a list."""
    sizes = [
        made.packed[1 + [one.name for one in made.operator.saved].index(f"{name}_size")]
        if f"{name}_size" in {one.name for one in made.operator.saved}
        else 1
        for name in made.operator.inputs
    ]
    return [flag for flag, size in zip(mask, sizes, strict=True) for _ in range(size)]


def eager_error(run: Callable[[], object]) -> tuple[type[Exception], str]:
    with pytest.raises(RuntimeError) as caught:
        run()
    return type(caught.value), str(caught.value)


_SAVING = [
    case for case in NODE_SET if any("Tensor" in one.schema_type for one in backbind.ops.get(case.node).saved)
]


@pytest.mark.parametrize("case", _SAVING, ids=str)
def test_released_tensors_raise_eagers_error(case: NodeCase) -> None:
    made = case.make()
    torch.autograd.grad(made.outputs, made.inputs, made.output_grads, allow_unused=True)
    expected = eager_error(
        lambda: torch.autograd.grad(made.outputs, made.inputs, made.output_grads, allow_unused=True)
    )
    assert "Trying to backward through the graph a second time" in expected[1]
    assert eager_error(lambda: backbind.pack(made.node)) == expected


_CHANGES: dict[str, Callable[[Tensor], object]] = {
    "add_": lambda tensor: tensor.add_(1),
    "zero_": lambda tensor: tensor.zero_(),
    "through a view": lambda tensor: tensor.view(-1)[0].fill_(2),
    "copy_": lambda tensor: tensor.copy_(torch.ones_like(tensor)),
}


@pytest.mark.parametrize("change", _CHANGES)
@pytest.mark.parametrize(
    "forward",
    [
        torch.exp,
        torch.sigmoid,
        lambda x: x * x,
        lambda x: x.softmax(-1),
        lambda x: torch._foreach_exp([x])[0],
    ],
    ids=["exp", "sigmoid", "mul", "softmax", "list"],
)
def test_tensors_changed_in_place_raise_eagers_error(
    forward: Callable[[Tensor], Tensor], change: str
) -> None:
    start = torch.randn(2, 3, requires_grad=True) * 1
    output = forward(start)
    node = output.grad_fn
    with torch.no_grad():
        _CHANGES[change](start if _saves(node, start) else output)
    # What follows the node must not change the output's version, nor look at it.
    expected = eager_error(lambda: torch.autograd.grad(output, start, torch.ones(2, 3)))
    assert "has been modified by an inplace operation" in expected[1]
    assert eager_error(lambda: backbind.pack(node)) == expected


def _saves(node: object, tensor: Tensor) -> bool:
    saved = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
    return any(one.data_ptr() == tensor.data_ptr() for one in tensors_of(saved))


def test_packing_does_not_release() -> None:
    made = NODE_SET[0].make()
    first, second = backbind.pack(made.node), backbind.pack(made.node)
    assert [one for one in first if not isinstance(one, Tensor)] == [
        one for one in second if not isinstance(one, Tensor)
    ]
    made.outputs[0].sum().backward()


def test_pack_refuses_what_has_no_operator() -> None:
    x = torch.ones(1, requires_grad=True)
    (accumulate, _), *_ = (x * 2).grad_fn.next_functions  # type: ignore[union-attr]
    for function in (backbind.pack, backbind.ops.for_node):
        with pytest.raises(LookupError) as caught:
            function(accumulate)
        assert str(caught.value) == (
            "node 'torch::autograd::AccumulateGrad' has no functional operator: it was not made by an entry of "
            "derivatives.yaml; backbind.ops lists the nodes that have one"
        )
        with pytest.raises(TypeError) as wrong:
            function(x)
        assert str(wrong.value) == "expected an autograd node (as in tensor.grad_fn), got Tensor"
        with pytest.raises(TypeError) as missing:
            function(None)
        assert str(missing.value) == "expected an autograd node (as in tensor.grad_fn), got NoneType"
