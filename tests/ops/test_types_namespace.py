"""What ``backbind.ops`` says to those who explore it, and to those who ask for what it does not have."""

from __future__ import annotations

import pydoc
from collections.abc import Callable
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor

OPS: Any = backbind.ops
"""Any, because mypy knows no statements and operators for a module."""

LERP_HELP = """\
Help on Operator in module backbind.ops

LerpBackward0 = <backbind.ops.LerpBackward0>
    Backward of lerp.Scalar as a pure function of gradients and saved values.

    Forward: lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor

    Formulas:
      self: weight.isComplex() ? grad * (1 - weight.conj().toComplexDouble()) : grad * (1 - weight.toDouble())
      end: grad * weight.conj()

    Args:
      grads: the gradient of 'result'; None where it is undefined
      needs_input_grad: whether a gradient is wanted for 'self', 'end'
      weight (Scalar): the forward's argument 'weight'

    Returns:
      The gradient of 'self', 'end'; None where it is not wanted or is zero.

    Source: derivatives.yaml:945 of torch 2.13.0.
"""


def test_help_of_an_operator() -> None:
    text = pydoc.plain(pydoc.render_doc(backbind.ops.LerpBackward0, "Help on %s"))
    assert "\n".join(line.rstrip() for line in text.splitlines()) + "\n" == LERP_HELP


def test_help_of_the_module_has_every_operator() -> None:
    text = pydoc.plain(pydoc.render_doc(backbind.ops, "Help on %s"))
    for operator in OPS:
        assert f"\n    {operator.name} = " in text


class Doubled(torch.autograd.Function):
    """A node that a user wrote."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


doubled: Callable[[Tensor], Tensor] = Doubled.apply
X = torch.ones(2, requires_grad=True)
NO_ENTRY = (
    "node '{}' has no functional operator: it was not made by an entry of derivatives.yaml; "
    "backbind.ops lists the nodes that have one"
)


def accumulator() -> object:
    node = (X * 2).grad_fn
    assert node is not None
    return node.next_functions[0][0]


@pytest.mark.parametrize("function", [backbind.ops.for_node, backbind.pack])
@pytest.mark.parametrize(
    ("node", "error", "message"),
    [
        (lambda: 3, TypeError, "expected an autograd node (as in tensor.grad_fn), got int"),
        (lambda: X.grad_fn, TypeError, "expected an autograd node (as in tensor.grad_fn), got NoneType"),
        (lambda: X * 2, TypeError, "expected an autograd node (as in tensor.grad_fn), got Tensor"),
        (
            lambda: backbind.ops.MulBackward0,
            TypeError,
            "expected an autograd node (as in tensor.grad_fn), got backbind._C.Operator",
        ),
        (lambda: doubled(X).grad_fn, LookupError, NO_ENTRY.format("DoubledBackward")),
        (accumulator, LookupError, NO_ENTRY.format("torch::autograd::AccumulateGrad")),
    ],
    ids=["int", "leaf", "tensor", "operator", "function", "accumulator"],
)
def test_what_is_no_node_of_an_entry_is_refused(
    function: Callable[[object], object], node: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        function(node())
    assert type(raised.value) is error
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "EmbeddingBackward",
            "no operator for a node called 'EmbeddingBackward', did you mean 'EmbeddingBackward0'?",
        ),
        ("mulbackward0", "no operator for a node called 'mulbackward0', did you mean 'MulBackward0'?"),
        ("", "no operator for a node called ''"),
        (7, "no operator for a node called 7"),
    ],
)
def test_get_of_what_is_not_there(name: str, message: str) -> None:
    with pytest.raises(KeyError) as raised:
        backbind.ops.get(name)
    assert raised.value.args == (message,)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "SofmaxBackward0",
            "module 'backbind.ops' has no operator 'SofmaxBackward0', did you mean 'SoftmaxBackward0'?",
        ),
        ("softmax", "module 'backbind.ops' has no operator 'softmax'"),
        ("__wrapped__", "module 'backbind.ops' has no operator '__wrapped__'"),
    ],
)
def test_an_attribute_that_is_not_there(name: str, message: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(backbind.ops, name)
    assert str(raised.value) == message


def test_an_attribute_that_an_operator_does_not_have() -> None:
    with pytest.raises(AttributeError) as raised:
        backbind.ops.MulBackward0.formula  # type: ignore[attr-defined]  # noqa: B018
    assert str(raised.value) == "'backbind._C.Operator' object has no attribute 'formula'"


def test_a_deleted_or_assigned_operator_is_found_by_name_all_the_same() -> None:
    """``get`` and iteration know the operators of the process, whatever was done to the module's names."""
    operator = backbind.ops.MulBackward0
    try:
        del backbind.ops.MulBackward0
        assert backbind.ops.get("MulBackward0") is operator
        assert operator in OPS
    finally:
        backbind.ops.MulBackward0 = operator


def test_the_container() -> None:
    """Names in order; ``in`` takes names and operators, and knows no others."""
    listed = list(OPS)
    names = [operator.name for operator in listed]
    assert len(OPS) == len(listed) == len(set(names)) == 711
    assert names == sorted(names)
    assert dir(backbind.ops) == sorted([*names, "for_node", "get"])
    assert sorted(backbind.ops.__all__) == dir(backbind.ops)
    for operator in listed:
        assert operator.name in OPS
        assert operator in OPS
        assert getattr(backbind.ops, operator.name) is operator
    others: tuple[object, ...] = (
        "get",
        "mul",
        7,
        None,
        [],
        X,
        listed[0].overload,
        torch.ops.backbind.MulBackward0,
    )
    for other in others:
        assert other not in OPS
