"""Every operator is one that the dispatcher, torchgen and torch's own tools understand."""

from __future__ import annotations

import backbind
import pytest
import torch
from backbind._operator import FunctionalOperator
from torchgen.model import FunctionSchema

from tests.ops.node_set import NODE_SET, NodeCase

OPERATORS = list(backbind.ops)


def test_there_is_an_operator_for_each_node() -> None:
    assert len(OPERATORS) == 711
    assert len({operator.name for operator in OPERATORS}) == 711


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_schema_survives_both_parsers(operator: FunctionalOperator) -> None:
    registered = operator.overload._schema
    parsed = torch._C.parse_schema(operator.schema)
    assert parsed == registered
    assert torch._C.parse_schema(str(parsed)) == registered
    without_namespace = operator.schema.removeprefix("backbind::")
    torchgen = FunctionSchema.parse(without_namespace)
    assert str(torchgen) == without_namespace
    assert [argument.name for argument in torchgen.arguments.flat_all] == [
        one.name for one in registered.arguments
    ]


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_schema_says_that_the_operator_is_functional(operator: FunctionalOperator) -> None:
    schema = operator.overload._schema
    assert not schema.is_mutable
    assert all(one.alias_info is None for one in [*schema.arguments, *schema.returns])
    assert [str(one.type) for one in schema.returns] == ["List[Tensor]"]
    assert [one.name for one in schema.arguments[:2]] == ["grads", "needs_input_grad"]
    assert f"bool[{len(operator.inputs)}] needs_input_grad" in str(schema)
    assert [one.name for one in schema.arguments[2:]] == [one.name for one in operator.saved]
    assert torch.Tag.pt2_compliant_tag in operator.overload.tags


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_registered_on_both_keys(operator: FunctionalOperator) -> None:
    name = f"backbind::{operator.name}"
    for key in ("CompositeImplicitAutograd", "FuncTorchBatchedDecomposition"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
    assert not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU")


@pytest.mark.slow
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_opcheck(case: NodeCase) -> None:
    """torch's own test of custom operators: the schema is right about mutation and aliasing, and fake tensors work."""
    made = case.make()
    arguments = (made.grads, *made.packed)
    tests = ["test_schema", "test_faketensor", "test_autograd_registration"]
    results = torch.library.opcheck(made.operator.overload, arguments, test_utils=tests)
    assert set(results.values()) == {"SUCCESS"}


def test_the_dispatcher_refuses_what_the_schema_does_not_allow() -> None:
    made = next(case for case in NODE_SET if case.node == "TanhBackward0").make()
    grads, (_, result) = made.grads, made.packed
    with pytest.raises(
        RuntimeError, match=r"Expected a value of type 'List\[Optional\[Tensor\]\]' for argument 'grads'"
    ):
        made.operator.overload(7, [True], result)
    with pytest.raises(RuntimeError, match=r"missing value for argument 'result'"):
        made.operator.overload(grads, [True])
