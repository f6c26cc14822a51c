"""Any value travels unchanged: forward -> live node -> pack -> Python -> operator -> formula, for every row of the type
table.

The forwards run without their kernels (carriers.py), so the values need not make sense to one; what a formula does with
them is compared by the ATen calls that it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import backbind
import pytest
import torch
from backbind._operator import FunctionalOperator
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from torch import Tensor

from codegen.model.saved_types import SAVED_TYPES
from tests.ivalue.carriers import CARRIERS, Carrier
from tests.ivalue.modes import StandIn, form, inside, parts
from tests.ivalue.values import made
from tests.ops.ways import WAYS, Way

_TRIPS = settings(max_examples=20, deadline=None, derandomize=True)
"""The same examples in every run: a change in the tree, not chance, makes a test fail."""
_FEW = settings(_TRIPS, max_examples=8)

_IN_FRONT = "TESTING_ONLY_GenericMode"
"""A dispatch key that no operator of torch has a kernel for and that comes before autograd's."""

Packed = Sequence[Any]
Calls = tuple[object, ...]

pytestmark = pytest.mark.filterwarnings("ignore:.*(quantized|Sparse|ComplexHalf)")


def test_every_row_has_a_carrier() -> None:
    assert {carrier.row for carrier in CARRIERS} == {row.key for row in SAVED_TYPES}


@pytest.mark.parametrize("carrier", CARRIERS, ids=str)
def test_a_carrier_carries_its_row(carrier: Carrier) -> None:
    (row,) = (row for row in SAVED_TYPES if row.key == carrier.row)
    operator = backbind.ops.get(carrier.node)
    carried = [operator.saved[position - 1].schema_type for position in _positions(operator, carrier)]
    assert carried == [one.schema for one in row.components] * (len(carried) // len(row.components))


def _positions(operator: FunctionalOperator, carrier: Carrier) -> list[int]:
    """Where the carrier's arguments are in what pack gives."""
    names = [argument.name for argument in operator.saved]
    return [names.index(name) + 1 for name in carrier.saved]


def _grads(node: torch.autograd.graph.Node) -> list[Tensor]:
    return [torch.ones(2, 3, dtype=torch.float64) for _ in node._input_metadata]


def _calls(run: Callable[[], object]) -> Calls:
    """The ATen calls that a backward makes, and how it ends."""
    with torch.no_grad(), StandIn() as kernels:
        try:
            result = run()
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            return kernels.calls, type(error), str(error).partition("\n")[0]
    return kernels.calls, form(result if isinstance(result, list | tuple) else [result])


def _calls_of_all_ways(operator: FunctionalOperator, grads: Sequence[Tensor], packed: Packed) -> Calls:
    """The same for an operator, which must not depend on how it is called."""
    fast, *others = (_calls(lambda: way.call(operator, grads, packed)) for way in WAYS)  # noqa: B023
    for way, calls in zip(WAYS[1:], others, strict=True):
        assert calls == fast, way
    return fast


def _refused(operator: FunctionalOperator, calls: Calls) -> bool:
    """Whether the operator found that the values cannot belong together, as no forward would have made them."""
    return len(calls) == 3 and calls[1] is ValueError and str(calls[2]).startswith(f"{operator.name}: ")


def _assert_reached(carrier: Carrier, values: Iterable[Any], calls: Calls) -> None:
    found = parts(calls)
    for value in values:
        assert not carrier.seen or form(value) in found, f"{value!r} reached no ATen operator"


@pytest.mark.parametrize("carrier", CARRIERS, ids=str)
@_TRIPS
@given(data=st.data())
def test_from_a_live_node(carrier: Carrier, data: DataObject) -> None:
    value = made(data.draw(carrier.values))
    node = carrier.make(value)
    operator = backbind.ops.for_node(node)
    assert operator.name == carrier.node
    packed = backbind.pack(node)
    arrived = [packed[position] for position in _positions(operator, carrier)]
    expected = list(carrier.expected(value))
    assert form(arrived) == form(expected)
    _assert_same_storage(arrived, expected)
    grads = _grads(node)
    calls = _calls_of_all_ways(operator, grads, packed)
    _assert_reached(carrier, expected, calls)
    if not _refused(operator, calls):
        assert calls == _calls(lambda: node(*grads))  # type: ignore[operator]


def _assert_same_storage(left: object, right: object) -> None:
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        assert left._version == right._version
        if left.layout == torch.strided:
            assert left.untyped_storage()._cdata == right.untyped_storage()._cdata
    elif isinstance(left, list) and isinstance(right, list):
        for one, other in zip(left, right, strict=True):
            _assert_same_storage(one, other)


@pytest.mark.parametrize("carrier", CARRIERS, ids=str)
@_TRIPS
@given(data=st.data())
def test_from_python(carrier: Carrier, data: DataObject) -> None:
    """Values that no forward need have made: what a formula sees does not depend on who parses the call."""
    value = made(data.draw(carrier.values))
    node = carrier.make(value)
    operator = backbind.ops.for_node(node)
    packed = list(backbind.pack(node))
    values = [data.draw(strategy) for strategy in carrier.given] or list(carrier.expected(value))
    for position, one in zip(_positions(operator, carrier), values, strict=True):
        packed[position] = one
    _assert_reached(carrier, values, _calls_of_all_ways(operator, _grads(node), packed))


@pytest.mark.parametrize("carrier", CARRIERS, ids=str)
@_FEW
@given(data=st.data())
def test_through_the_dispatcher(carrier: Carrier, data: DataObject) -> None:
    """A kernel of Python that stands before all others is given what the dispatcher made of the arguments."""
    node = carrier.make(made(data.draw(carrier.values)))
    operator = backbind.ops.for_node(node)
    grads, packed = _grads(node), backbind.pack(node)
    for way in WAYS[:2]:
        with _arguments_in_front(carrier.node) as received:
            way.call(operator, grads, packed)
        assert form(received) == form([[grads, *packed]]), way


@contextmanager
def _arguments_in_front(node: str) -> Iterator[list[tuple[Any, ...]]]:
    """The arguments of the operator's calls inside, which are answered with an empty list."""
    received: list[tuple[Any, ...]] = []

    def kernel(*arguments: Any) -> list[Tensor]:
        received.append(arguments)
        return []

    library = torch.library.Library("backbind", "IMPL")
    try:
        library.impl(node, kernel, _IN_FRONT)
        key = torch._C._parse_dispatch_key(_IN_FRONT)
        assert key is not None
        with torch._C._IncludeDispatchKeyGuard(key):
            yield received
    finally:
        library._destroy()


def _named(operator: FunctionalOperator, grads: Any, packed: Packed) -> dict[str, Any]:
    names = ["grads", "needs_input_grad", *(argument.name for argument in operator.saved)]
    return dict(zip(reversed(names), reversed([grads, *packed]), strict=True))


_BY_KEYWORD = (
    Way("fast", lambda operator, grads, packed: operator(**_named(operator, grads, packed))),
    Way("dispatcher", lambda operator, grads, packed: operator.overload(**_named(operator, grads, packed))),
    Way("delegate", lambda operator, grads, packed: operator.delegate(**_named(operator, grads, packed))),
)


@pytest.mark.parametrize("carrier", CARRIERS, ids=str)
@_FEW
@given(data=st.data())
def test_as_tuples_and_by_keyword(carrier: Carrier, data: DataObject) -> None:
    node = carrier.make(made(data.draw(carrier.values)))
    operator = backbind.ops.for_node(node)
    packed = backbind.pack(node)
    as_tuples = [tuple(one) if isinstance(one, list) else one for one in packed]
    grads = _grads(node)
    expected = _calls_of_all_ways(operator, grads, packed)
    assert _calls_of_all_ways(operator, grads, as_tuples) == expected
    for way in _BY_KEYWORD:
        assert _calls(lambda: way.call(operator, grads, packed)) == expected, way  # noqa: B023


def test_one_tensor_in_two_places_stays_one() -> None:
    leaf = torch.ones(2, requires_grad=True)
    _, other, _, own, _ = backbind.pack((leaf * leaf).grad_fn)
    assert other is own is leaf


def test_tensors_made_by_the_user_come_back_as_the_same_objects() -> None:
    leaf, weight = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
    index = torch.tensor([0])
    assert any(one is weight for one in inside(backbind.pack((leaf * weight).grad_fn)))
    assert any(one is index for one in inside(backbind.pack(leaf[index].grad_fn)))
    assert any(
        one is weight for one in inside(backbind.pack(torch._foreach_mul([leaf], [weight])[0].grad_fn))
    )
