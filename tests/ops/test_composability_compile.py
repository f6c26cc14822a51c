"""Operators under torch.compile: no graph breaks, dynamic sizes, calls of ``backbind.ops`` that become overloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor, fx
from torch._dynamo.backends.debugging import aot_eager

from tests.ops.call_module import call_module, inputs_of, targets_of
from tests.ops.node_set import NODE_SET, Made, NodeCase, all_same_bits

SIZE = 6
"""No other size in the shapes of the node set, so that Dynamo does not take two sizes for one."""
OTHER_SIZE = 9

Gradients = list[Tensor | None]


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    """What one test compiled is nothing to the next: it would count as recompiling."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Recorder:
    """A backend that keeps the graphs which it is given, and hands them on."""

    def __init__(self, then: Callable[..., Any] | None = None) -> None:
        self._given: list[fx.GraphModule] = []
        self._then = then

    @property
    def graphs(self) -> list[fx.GraphModule]:
        """Those that are in use: Dynamo empties a graph that it throws away to start anew."""
        return [graph for graph in self._given if len(graph.graph.nodes)]

    def __call__(self, module: fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        self._given.append(module)
        return module.forward if self._then is None else self._then(module, inputs)


def compiled(function: Callable[..., Any], backend: Any, dynamic: bool | None = True) -> Callable[..., Any]:
    return torch.compile(function, fullgraph=True, dynamic=dynamic, backend=backend)


def case_of(node: str) -> NodeCase:
    return next(case for case in NODE_SET if case.node == node)


NO_SYMBOLIC_SIZES = {"UpsampleBilinear2DBackward0"}
"""Nodes whose formula torch itself cannot trace with symbolic sizes (see the tests of traces): compiled statically."""
ANOTHER_WAY = {"ProdBackward0"}
"""Nodes for which torch takes another way when it may not look at values: it rounds differently."""
SIZES_ARE_CONSTANTS = {"BlockDiagBackward0"}
"""Nodes whose sizes are plain integers in the schema: another size is another graph."""


def assert_result(case: NodeCase, result: Gradients, size: int) -> None:
    expected = case.make(size).call()
    if case.node in ANOTHER_WAY:
        torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12)
    else:
        assert all_same_bits(result, expected)


QUICK = {"MulBackward0", "SliceBackward0", "CatBackward0", "ForeachNegBackward0"}
"""What is compiled in every run of the tests."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.node, marks=() if case.node in QUICK else pytest.mark.slow)
        for case in NODE_SET
    ],
)
def test_compile_with_aot_eager(case: NodeCase) -> None:
    """Compiled once, the overload is right at two sizes, to the last bit."""
    made, other = case.make(SIZE), case.make(OTHER_SIZE)
    backend = Recorder(aot_eager)
    module = call_module(made)
    function = compiled(lambda *inputs: module(*inputs), backend, dynamic=case.node not in NO_SYMBOLIC_SIZES)
    assert_result(case, function(*inputs_of(made)), SIZE)
    assert [targets_of(graph) for graph in backend.graphs] == [[made.operator.overload]]
    if case.node not in NO_SYMBOLIC_SIZES | SIZES_ARE_CONSTANTS:
        assert_result(case, function(*inputs_of(other)), OTHER_SIZE)
        assert len(backend.graphs) == 1


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.node, marks=() if case.node in QUICK else pytest.mark.slow)
        for case in NODE_SET
    ],
)
def test_a_call_of_the_operator_becomes_a_call_of_the_overload(case: NodeCase) -> None:
    """Dynamo's graph is the same, whichever face of the operator is called."""
    made = case.make(SIZE)
    dynamic = case.node not in NO_SYMBOLIC_SIZES

    def graph_of(target: Callable[..., Any]) -> str:
        backend = Recorder()
        module = call_module(made, target)
        function = compiled(lambda *inputs: module(*inputs), backend, dynamic)
        assert_result(case, function(*inputs_of(made)), SIZE)
        (graph,) = backend.graphs
        assert targets_of(graph) == [made.operator.overload]
        return graph.code

    by_overload = graph_of(made.operator.overload)
    torch._dynamo.reset()
    assert graph_of(made.operator) == by_overload


def by_attribute(grad: Tensor, result: Tensor) -> Gradients:
    return backbind.ops.TanhBackward0([grad], [True], result)


def by_keyword(grad: Tensor, result: Tensor) -> Gradients:
    return backbind.ops.TanhBackward0(grads=(grad,), needs_input_grad=(True,), result=result)


def by_name(grad: Tensor, result: Tensor) -> Gradients:
    return backbind.ops.get("TanhBackward0")([grad], [True], result)


def by_dunder(grad: Tensor, result: Tensor) -> Gradients:
    return backbind.ops.TanhBackward0.__call__([grad], [True], result)


_GLOBAL = backbind.ops.TanhBackward0


def by_global(grad: Tensor, result: Tensor) -> Gradients:
    return _GLOBAL([grad], [True], result)


def by_unpacking(grad: Tensor, result: Tensor) -> Gradients:
    arguments: list[Any] = [[grad], [True], result]
    return _GLOBAL(*arguments)


def by_overload(grad: Tensor, result: Tensor) -> Gradients:
    gradients: Gradients = _GLOBAL.overload([grad], [True], result)
    return gradients


WAYS = [by_attribute, by_keyword, by_name, by_dunder, by_global, by_unpacking, by_overload]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_the_call_compiles(way: Callable[[Tensor, Tensor], Gradients]) -> None:
    grad, result = torch.randn(6, 4), torch.rand(6, 4)
    backend = Recorder(aot_eager)
    actual = compiled(way, backend)(grad, result)
    assert [targets_of(graph) for graph in backend.graphs] == [[_GLOBAL.overload]]
    assert all_same_bits(actual, way(grad, result))


def test_the_operator_itself_can_be_compiled() -> None:
    grad, result = torch.randn(6, 4), torch.rand(6, 4)
    backend = Recorder(aot_eager)
    actual = compiled(_GLOBAL, backend)([grad], [True], result)
    assert [targets_of(graph) for graph in backend.graphs] == [[_GLOBAL.overload]]
    assert all_same_bits(actual, _GLOBAL([grad], [True], result))


def test_an_operator_given_as_an_argument_is_guarded() -> None:
    """Another operator in the same place is another graph."""
    grad, result = torch.randn(6, 4), torch.rand(6, 4)
    backend = Recorder(aot_eager)
    function = compiled(lambda operator, *values: operator([values[0]], [True], values[1]), backend)
    operators = [backbind.ops.TanhBackward0, backbind.ops.SigmoidBackward0, backbind.ops.TanhBackward0]
    for operator in operators:
        assert all_same_bits(function(operator, grad, result), operator([grad], [True], result))
    assert [targets_of(graph) for graph in backend.graphs] == [
        [backbind.ops.TanhBackward0.overload],
        [backbind.ops.SigmoidBackward0.overload],
    ]


def test_compiled_operators_can_be_differentiated() -> None:
    """The compiled backward of an operator is the double backward of eager."""
    grad = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    result = torch.rand(6, 4, dtype=torch.float64, requires_grad=True)

    def loss(call: Callable[[Tensor, Tensor], Gradients]) -> tuple[Tensor, ...]:
        (gradient,) = call(grad, result)
        assert gradient is not None
        return torch.autograd.grad(gradient.sum(), [grad, result])

    assert all_same_bits(loss(compiled(by_attribute, "aot_eager")), loss(by_attribute))


INDUCTOR = [
    "MulBackward0",
    "GeluBackward0",
    "LogSoftmaxBackward0",
    "NativeLayerNormBackward0",
    "CatBackward0",
    "ForeachAddcmulBackward0ScalarList",
]


@pytest.mark.slow
@pytest.mark.parametrize("node", INDUCTOR)
def test_compile_with_inductor(node: str) -> None:
    """Inductor writes its own kernels, with its own exponential and its own order of sums: no equal bits."""
    made, other = case_of(node).make(SIZE), case_of(node).make(OTHER_SIZE)
    module = call_module(made, made.operator)

    def close(actual: Gradients, to: Made) -> None:
        torch.testing.assert_close(actual, to.call(), rtol=1e-9, atol=1e-11)

    with torch._inductor.config.patch(compile_threads=1):
        function = compiled(lambda *inputs: module(*inputs), "inductor")
        close(function(*inputs_of(made)), made)
        close(function(*inputs_of(other)), other)
