"""What codegen/model/helpers.py claims of each helper, against what the helper is seen to do.

A helper is run through live nodes with a formula that is a call of it and of no other helper: as an operator, and as a
replay's step runs it. What is claimed must be seen somewhere, and nothing else may be seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import backbind
import pytest
import torch
from backbind import _C
from torch import Tensor
from torch.autograd.graph import Node

from codegen.model.helpers import ASK_REQUIRES_GRAD, HELPERS
from codegen.parse.expression import Call, Conditional, Member, Name, walk
from codegen.parse.formula import parse_formula
from tests.ops.called_operators import operator_name, outermost, recorded
from tests.oracle.live_node import edge_flags, input_spans

ORDERS = ("rows", "columns")


def _leaf(*shape: int, order: str = "rows", dtype: torch.dtype = torch.float64) -> Tensor:
    values = torch.rand(shape, dtype=dtype) + 0.5
    return (values.mT.contiguous().mT if order == "columns" else values).requires_grad_()


def _forwards() -> Iterator[Tensor | tuple[Tensor, ...]]:
    """Results of forwards whose nodes call helpers, each in the ways in which the helper can go."""
    a, b, row, single = _leaf(2, 3), _leaf(2, 3), _leaf(3), _leaf(2, 3, dtype=torch.float32)
    yield from (a * b, a * row, a * single, single * a, a * 2.5, a * 2)
    yield from (a / b, row / a, single / a, a / 2.5, a / 2)
    for rounding_mode in ("floor", "trunc"):
        yield from (torch.div(a, other, rounding_mode=rounding_mode) for other in (b, 2.5))
    for alpha in (1, 2.5):
        yield from (torch.add(a, b, alpha=alpha), torch.sub(a, b, alpha=alpha), torch.rsub(a, b, alpha=alpha))
    yield from (a**exponent for exponent in (0, 0.0, 1, 2, 2.5))
    for first, second, factor in itertools.product(ORDERS, ORDERS, (1, 2.5)):
        left, right = _leaf(4, 3, order=first), _leaf(3, 5, order=second)
        yield from (left @ right, torch.addmm(_leaf(4, 5), left, right, beta=factor, alpha=factor))
    yield from (_leaf(2, 3, 4).permute(dims) for dims in ((0, 1, 2), (2, 0, 1), (-1, 0, 1)))
    for shape in ((2, 1, 3, 1), (2, 3), ()):
        x = _leaf(*shape)
        yield from (x.squeeze(), x.squeeze(-1))
        yield from (x.squeeze((0, -1)) for _ in shape[1:2])
    for keepdim in (True, False):
        yield from (_leaf(2, 3, 4).sum(dims, keepdim=keepdim) for dims in ((1,), (0, -1), ()))
        yield _leaf().sum(0, keepdim=keepdim)
        yield from (_leaf(2, 3, 4).mean(dims, keepdim=keepdim) for dims in ((1,), (0, -1), ()))
        yield _leaf().mean(0, keepdim=keepdim)
    yield from (torch.nn.functional.silu(a), torch.nn.functional.silu(row))
    yield from (_leaf(4, 3)[1:], _leaf(4, 3)[:, ::2], torch.narrow_copy(_leaf(4, 3), 0, 1, 2))
    yield from (torch.nn.functional.pad(_leaf(2, 3), pad) for pad in ((1, 1), (0, 1, -1, 0)))
    yield from (_leaf(5, 2).split(2), _leaf(5, 2).split([2, 3]), torch.unsafe_split(_leaf(5, 2), 2))
    yield from (_leaf(3, 2).unbind(), _leaf(3, 2).unbind(-1))
    yield from (torch.clamp(a, *bounds) for bounds in ((0.6, 0.9), (0.6, None), (None, 0.9)))
    for low, high in ((_leaf(2, 3), _leaf(3)), (_leaf(3), None), (None, _leaf(2, 3))):
        yield torch.clamp(a, low, high)
    yield from (
        torch.cat([a, b, a[:1]]),
        torch.cat([_leaf(0), a], 1),
        torch.stack([a, b]),
        torch.stack([a], -1),
    )
    yield from (a[torch.tensor([1, 1, 0])], a[:, torch.tensor([0, 2])], a[a > 0.8])
    yield from (a.float(), single.double(), a.to(torch.float64, copy=True))


@dataclass
class Seen:
    """What a helper did, all its calls together."""

    returned: set[int] = field(default_factory=set)
    """Positions of arguments that came back as they were."""
    named: set[int] = field(default_factory=set)
    """Positions of arguments that were gradients or saved values, so that one of them would be known again."""
    views: set[bool] = field(default_factory=set)
    """Whether the other results were views."""
    written: set[bool] = field(default_factory=set)
    """Whether they were written to in place, as far as their versions tell."""
    operators: set[str | None] = field(default_factory=set)
    calls: int = 0


def _called_helper(text: str) -> tuple[Call, bool] | None:
    """The formula as a call of one helper and no other, if it is one; and whether it is so in grad mode alone."""
    root = parse_formula(text).root
    is_conditional = isinstance(root, Conditional)
    if isinstance(root, Conditional):
        assert text.startswith("GradMode::is_enabled() ?")
        root = root.positive
    functions = [one.function for one, _, _ in walk(root) if isinstance(one, Call)]
    helpers = [one for one in functions if isinstance(one, Name) and one.plain in HELPERS]
    return (root, is_conditional) if isinstance(root, Call) and helpers == [root.function] else None


def _past_dispatcher(event: Any, dispatched: set[str | None]) -> Iterator[str | None]:
    """The operators inside one that a step calls past the dispatcher, down to those that it dispatches."""
    for child in event.cpu_children:
        if operator_name(child) not in dispatched:
            yield operator_name(child)
            yield from _past_dispatcher(child, dispatched)


def _observe(result: Tensor | tuple[Tensor, ...], seen: dict[str, Seen]) -> None:
    """Run each formula of a result's node that is a call of one helper, also without the first of several gradients."""
    outputs = (result,) if isinstance(result, Tensor) else result
    node = outputs[0].grad_fn
    assert node is not None
    operator = backbind.ops.for_node(node)
    packed: Any = backbind.pack(node)
    needs_input_grad, *saved = packed
    for formula in operator.formulas:
        found = _called_helper(formula.text)
        wanted = [name in formula.inputs for name in operator.inputs]
        if found is not None and needs_input_grad[wanted.index(True)]:
            call, in_grad_mode = found
            assert isinstance(call.function, Name)
            gradients: list[Tensor | None] = [torch.rand_like(one) for one in outputs]
            did = seen[call.function.path[-1]]
            with torch.set_grad_enabled(in_grad_mode):
                _observe_call(call, node, wanted, saved, gradients, did)
            if len(gradients) > 1:
                with torch.no_grad():
                    _observe_call(call, node, wanted, saved, [None, *gradients[1:]], did)


def _observe_call(
    call: Call,
    node: Node,
    wanted: list[bool],
    saved: list[Any],
    gradients: list[Tensor | None],
    seen: Seen,
) -> None:
    operator = backbind.ops.for_node(node)
    results: list[Tensor | None] = []
    as_operator = recorded(lambda: results.extend(operator(gradients, wanted, *saved)))
    count = len(results)

    def run_step() -> None:
        # A helper may go other ways here, which must not show in the result. No step runs in grad mode.
        if not torch.is_grad_enabled():
            spans = input_spans(node, operator, saved)
            results.extend(_C.run_step(node, gradients, edge_flags(spans, wanted)) or ())

    as_step = recorded(run_step)
    made = [one for one in results if one is not None]
    of_operator = [one for one in results[:count] if one is not None]
    assert of_operator
    assert len(made) == len(of_operator) * (1 if torch.is_grad_enabled() else 2)
    arguments = {
        "grad": gradients[0],
        **{one.name: value for one, value in zip(operator.saved, saved, strict=True)},
    }
    named = [arguments.get(one.path[-1]) if isinstance(one, Name) else None for one in call.arguments]
    seen.named.update(position for position, argument in enumerate(named) if argument is not None)
    for result in made:
        same = [position for position, argument in enumerate(named) if argument is result]
        seen.returned.update(same)
        if not same:
            seen.written.add(result._version > 0)
            seen.views.add(result._is_view() or result.data_ptr() in _addresses(*gradients, *saved))
    in_arguments = {
        one.function.name.removesuffix("_symint")
        for argument in call.arguments
        for one, _, _ in walk(argument)
        if isinstance(one, Call) and isinstance(one.function, Member)
    }
    dispatched = {operator_name(event) for event in outermost(as_step)}
    for event in outermost(as_operator):
        if operator_name(event) not in in_arguments:
            seen.operators.add(operator_name(event))
        if operator_name(event) not in dispatched and not torch.is_grad_enabled():
            seen.operators.update(_past_dispatcher(event, dispatched))
    seen.calls += 1


def _addresses(*values: object) -> set[int]:
    return {value.data_ptr() for value in values if isinstance(value, Tensor)}


@pytest.fixture(scope="module")
def seen() -> dict[str, Seen]:
    found = {name: Seen() for name in HELPERS}
    torch.manual_seed(0)
    for output in _forwards():
        _observe(output, found)
    return found


@pytest.mark.parametrize("name", HELPERS)
def test_claims(name: str, seen: dict[str, Seen]) -> None:
    helper, did = HELPERS[name], seen[name]
    assert did.calls > 1
    assert did.returned == {helper.returned} & did.named
    assert (True in did.views) == helper.gives_views
    assert (True in did.written) == helper.writes
    assert did.operators == set(helper.operators)


def _solve(a: Tensor, b: Tensor) -> Tensor:
    result: Tensor = torch.linalg.solve(a, b)
    return result


ASKING = {"linalg_solve_backward": (_solve, ((3, 3), (3, 3)))}
"""By helper: a forward whose node calls it, and the shapes of its inputs."""


@pytest.mark.parametrize("name", ASK_REQUIRES_GRAD)
def test_a_helper_asks_an_argument_whether_it_requires_grad(name: str) -> None:
    """Where the argument does not, the gradient that it asks for is left out, whatever the node's edges say."""
    forward, shapes = ASKING[name]
    inputs = [_leaf(*shape) for shape in shapes]
    node: Any = forward(*inputs).grad_fn
    operator = backbind.ops.for_node(node)
    (call,) = (
        one
        for formula in operator.formulas
        for one, _, _ in walk(parse_formula(formula.text).root)
        if isinstance(one, Call) and isinstance(one.function, Name) and one.function.plain == name
    )
    asked = call.arguments[ASK_REQUIRES_GRAD[name]]
    assert isinstance(asked, Name)
    position = operator.inputs.index(asked.path[-1])
    gradients = [torch.ones(metadata.shape, dtype=metadata.dtype) for metadata in node._input_metadata]
    assert node(*gradients)[position] is not None
    inputs[position].requires_grad_(False)
    assert node(*gradients)[position] is None
