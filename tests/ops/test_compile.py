"""Operators inside torch.compile and torch.export, called by either face, with shapes that change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor, fx

from tests.ops.node_set import NODE_SET, Made, NodeCase, all_same_bits
from tests.ops.test_composability import over_tensors

_INDUCTOR = (
    "MulBackward0",
    "TanhBackward0",
    "GeluBackward0",
    "SumBackward1",
    "AddmmBackward0",
    "CatBackward0",
    "IndexBackward0",
    "NativeLayerNormBackward0",
)


@pytest.fixture(autouse=True)
def _fresh_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("torch._inductor.config.compile_threads", 1)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Recorder:
    """A backend that keeps the graphs it is given and runs them as they are."""

    def __init__(self) -> None:
        self.graphs: list[fx.GraphModule] = []

    def __call__(self, graph: fx.GraphModule, example_inputs: list[Tensor]) -> Callable[..., Any]:
        self.graphs.append(graph)
        return graph.forward

    def targets(self) -> list[object]:
        return [node.target for graph in self.graphs for node in graph.graph.nodes if node.op == "call_function"]


def by_name(node: str) -> NodeCase:
    return next(case for case in NODE_SET if case.node == node)


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_dynamo_puts_the_overload_into_its_graph(case: NodeCase) -> None:
    made = case.make()
    for face in (made.operator, made.operator.overload):
        recorder = Recorder()
        call, tensors = over_tensors(made, face)
        compiled = torch.compile(call, fullgraph=True, dynamic=True, backend=recorder)
        assert all_same_bits(compiled(*tensors), call(*tensors))
        assert recorder.targets().count(made.operator.overload) == 1
        torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_aot_eager(case: NodeCase) -> None:
    made = case.make()
    call, tensors = over_tensors(made, made.operator)
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="aot_eager")
    assert all_same_bits(compiled(*tensors), call(*tensors))


@pytest.mark.slow
@pytest.mark.parametrize("node", _INDUCTOR)
def test_inductor(node: str) -> None:
    made = by_name(node).make()
    call, tensors = over_tensors(made, made.operator)
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="inductor")
    for ours, theirs in zip(compiled(*tensors), call(*tensors), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


def sized_backwards() -> dict[str, Callable[[Tensor, Tensor], list[Tensor | None]]]:
    """Calls whose saved sizes are sizes of their tensors, so that they are symbols where shapes are."""
    ops = backbind.ops
    return {
        "sum": lambda grad, x: ops.SumBackward1([grad[:, 0]], [True], [1], False, list(x.shape)),
        "view": lambda grad, x: ops.ViewBackward0([grad.reshape(-1)], [True], list(x.shape)),
        "slice": lambda grad, x: ops.SliceBackward0([grad[:, 1:]], [True], 1, x.shape[1], [*x.shape], 1, 1),
        "expand": lambda grad, x: ops.ExpandBackward0([grad], [True], [1, x.shape[1]]),
        "select": lambda grad, x: ops.SelectBackward0([grad[0]], [True], 0, 0, [x.shape[0], x.shape[1]]),
        "cat": lambda grad, x: ops.CatBackward0(
            [grad], [True], 1, [x.dtype, x.dtype], [x.shape[0], 1, x.shape[0], x.shape[1] - 1], [2, 2], 2
        ),
        "mm": lambda grad, x: ops.MmBackward0(
            [grad.mm(grad.t())],
            [True, True],
            x.t(),
            torch.strided,
            [x.shape[1], x.shape[0]],
            [1, x.shape[1]],
            x,
            torch.strided,
            list(x.shape),
            [x.shape[1], 1],
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", sized_backwards())
def test_one_compilation_serves_every_size(name: str, backend: str) -> None:
    call = sized_backwards()[name]
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend=backend)
    for rows, columns in ((3, 4), (5, 6), (7, 11)):
        grad, x = torch.randn(2, rows, columns, dtype=torch.float64)
        with torch.compiler.set_stance("fail_on_recompile" if rows > 3 else "default"):
            actual = compiled(grad, x)
        for ours, theirs in zip(actual, call(grad, x), strict=True):
            if ours is None or theirs is None:
                assert ours is theirs
            else:
                torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", sized_backwards())
def test_symbolic_sizes_outside_of_dynamo(name: str) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    call = sized_backwards()[name]
    grad, x = torch.randn(2, 3, 4, dtype=torch.float64)
    traced = make_fx(call, tracing_mode="symbolic")(grad, x)
    assert all_same_bits(traced(grad, x), call(grad, x))


class Backward(torch.nn.Module):
    """An operator's call as a module, for export."""

    def __init__(self, made: Made) -> None:
        super().__init__()
        self._call, self.tensors = over_tensors(made, made.operator.overload)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(self._call(*tensors))


@pytest.mark.slow
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_export(case: NodeCase) -> None:
    module = Backward(case.make())
    program = torch.export.export(module, tuple(module.tensors))
    assert all_same_bits(program.module()(*module.tensors), module(*module.tensors))
    # Operators may be kept, or taken apart into those of ATen.
    taken_apart = program.run_decompositions()
    targets = [str(node.target) for node in taken_apart.graph.nodes if node.op == "call_function"]
    assert not any(target.startswith("backbind") for target in targets)
    for ours, theirs in zip(taken_apart.module()(*module.tensors), module(*module.tensors), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


def test_keyword_call_in_a_compiled_region() -> None:
    def backward(grad: Tensor, result: Tensor) -> list[Tensor | None]:
        return backbind.ops.TanhBackward0(grads=[grad], needs_input_grad=[True], result=result)

    grad, result = torch.randn(2, 3)
    recorder = Recorder()
    compiled = torch.compile(backward, fullgraph=True, backend=recorder)
    assert all_same_bits(compiled(grad, result), backward(grad, result))
    assert recorder.targets()[0] is torch.ops.backbind.TanhBackward0.default


def test_looking_an_operator_up_in_a_compiled_region() -> None:
    def backward(grad: Tensor, result: Tensor) -> list[Tensor | None]:
        return backbind.ops.get("TanhBackward0")([grad], [True], result)

    grad, result = torch.randn(2, 3)
    compiled = torch.compile(backward, fullgraph=True, backend="eager")
    assert all_same_bits(compiled(grad, result), backward(grad, result))


def test_gradients_flow_through_a_compiled_call() -> None:
    def loss(x: Tensor) -> Tensor:
        (gradient,) = backbind.ops.TanhBackward0([x], [True], x.tanh())
        assert gradient is not None
        return gradient.sum()

    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    (ours,) = torch.autograd.grad(compiled(x), x)
    (theirs,) = torch.autograd.grad(loss(x), x)
    torch.testing.assert_close(ours, theirs)


def test_importing_backbind_does_not_import_the_compiler() -> None:
    import subprocess
    import sys

    code = "import sys, backbind; sys.exit('torch._dynamo' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
