"""A traced backward gives eager's gradients, bit for bit, and refuses what it cannot hold."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import backbind
import pytest
import torch
from torch import nn

from tests.capture.random_programs import run_program
from tests.processes import run_python

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"


def same_bits(traced: torch.Tensor | None, eager: torch.Tensor | None) -> bool:
    """Equal in dtype, shape, layout and every bit (all NaN are alike)."""
    if traced is None or eager is None:
        return traced is eager
    if (traced.dtype, traced.shape, traced.layout) != (eager.dtype, eager.shape, eager.layout):
        return False
    traced, eager = traced.detach(), eager.detach()
    if traced.layout is not torch.strided:
        traced, eager = traced.coalesce(), eager.coalesce()
        return torch.equal(traced.indices(), eager.indices()) and same_bits(traced.values(), eager.values())
    if traced.is_complex():
        traced, eager = torch.view_as_real(traced.resolve_conj()), torch.view_as_real(eager.resolve_conj())
    both_nan = (
        traced.isnan() & eager.isnan()
        if traced.is_floating_point()
        else torch.zeros_like(traced, dtype=torch.bool)
    )
    signs = torch.signbit(traced) == torch.signbit(eager)
    return bool((((traced == eager) & signs) | both_nan).all())


def eager_gradients(outputs: torch.Tensor, inputs: list[torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    return torch.autograd.grad(outputs, inputs, retain_graph=True, allow_unused=True)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_equal_eager(seed: int) -> None:
    program = run_program(seed)
    leaves = list(program.leaves)
    traced = backbind.trace(program.loss, leaves)()
    expected = eager_gradients(program.loss, leaves)
    assert all(same_bits(one, other) for one, other in zip(traced, expected, strict=True))


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape) * 31 + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()


def broadcast_both_ways() -> tuple[torch.Tensor, list[torch.Tensor]]:
    left, right = leaf(3, 1), leaf(4)
    return (left * right + right).sum(), [left, right]


def mixed_dtypes() -> tuple[torch.Tensor, list[torch.Tensor]]:
    single, double = leaf(3), leaf(3, dtype=torch.float64)
    return (single * double).sum(), [single, double]


def summed_in_another_dtype() -> tuple[torch.Tensor, list[torch.Tensor]]:
    value = leaf(5)
    return value.sum(dtype=torch.float64), [value]


def complex_and_real() -> tuple[torch.Tensor, list[torch.Tensor]]:
    value, real = leaf(3, dtype=torch.complex64), leaf(3)
    return (value * real).abs().sum(), [value, real]


def outputs_left_unused() -> tuple[torch.Tensor, list[torch.Tensor]]:
    value = leaf(4, 4)
    _, _, vh = torch.linalg.svd(value)
    first, *_ = value.unbind()
    return vh.abs().sum() + first.sum(), [value]


def sparse_embedding() -> tuple[torch.Tensor, list[torch.Tensor]]:
    weight = leaf(6, 3)
    picked = nn.functional.embedding(torch.tensor([1, 4, 1]), weight, sparse=True)
    return picked.sum(), [weight]


def sparse_and_dense() -> tuple[torch.Tensor, list[torch.Tensor]]:
    weight = leaf(6, 3)
    picked = nn.functional.embedding(torch.tensor([1, 4, 1]), weight, sparse=True)
    return picked.sum() + weight.sum(), [weight]


def dense_and_sparse() -> tuple[torch.Tensor, list[torch.Tensor]]:
    weight = leaf(6, 3)
    dense = weight.sum()
    picked = nn.functional.embedding(torch.tensor([1, 4, 1]), weight, sparse=True)
    return dense + picked.sum(), [weight]


def an_inner_tensor() -> tuple[torch.Tensor, list[torch.Tensor]]:
    value = leaf(3)
    inner = value.exp()
    return (inner * inner).sum(), [inner, value]


def an_unreachable_tensor() -> tuple[torch.Tensor, list[torch.Tensor]]:
    value, other = leaf(3), leaf(3)
    return value.sum(), [value, other]


def a_leaf_itself() -> tuple[torch.Tensor, list[torch.Tensor]]:
    value = leaf(1)
    return value, [value]


def recurrent() -> tuple[torch.Tensor, list[torch.Tensor]]:
    torch.manual_seed(0)
    network = nn.LSTM(3, 4, num_layers=2)
    return network(torch.randn(5, 2, 3))[0].sum(), list(network.parameters())


def convolutional() -> tuple[torch.Tensor, list[torch.Tensor]]:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)
    )
    return network(torch.randn(2, 1, 8, 8)).square().mean(), list(network.parameters())


def transformer() -> tuple[torch.Tensor, list[torch.Tensor]]:
    torch.manual_seed(0)
    network = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
    return network(torch.randn(2, 5, 8)).sum(), list(network.parameters())


PROGRAMS: tuple[Callable[[], tuple[torch.Tensor, list[torch.Tensor]]], ...] = (
    broadcast_both_ways,
    mixed_dtypes,
    summed_in_another_dtype,
    complex_and_real,
    outputs_left_unused,
    sparse_embedding,
    sparse_and_dense,
    dense_and_sparse,
    an_inner_tensor,
    an_unreachable_tensor,
    a_leaf_itself,
    recurrent,
    convolutional,
    transformer,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_equal_eager(program: Callable[[], tuple[torch.Tensor, list[torch.Tensor]]]) -> None:
    loss, inputs = program()
    traced = backbind.trace(loss, inputs)()
    expected = eager_gradients(loss, inputs)
    assert all(same_bits(one, other) for one, other in zip(traced, expected, strict=True))


def test_gradients_of_several_outputs_are_arguments() -> None:
    value = leaf(3, 2)
    outputs = [value.sin(), value.cos().sum(dim=0)]
    given = [torch.full((3, 2), 0.5), torch.tensor([1.0, -2.0])]
    graph = backbind.trace(outputs, [value])
    expected = torch.autograd.grad(outputs, [value], given, retain_graph=True)
    assert all(same_bits(one, other) for one, other in zip(graph(*given), expected, strict=True))


def test_without_inputs_the_leaves_are_returned_in_order() -> None:
    program = run_program(7)
    leaves = backbind.leaves(program.loss)
    traced = backbind.trace(program.loss)()
    assert len(traced) == len(leaves)
    assert all(
        same_bits(one, other)
        for one, other in zip(traced, eager_gradients(program.loss, leaves), strict=True)
    )


def test_a_mapping_gives_a_dict() -> None:
    network = nn.Linear(3, 2)
    loss = network(torch.ones(4, 3)).sum()
    traced = backbind.trace(loss, dict(network.named_parameters()))()
    assert list(traced) == ["weight", "bias"]
    loss.backward()
    assert all(same_bits(traced[name], parameter.grad) for name, parameter in network.named_parameters())


def test_nothing_is_accumulated_and_the_live_graph_still_runs() -> None:
    value = leaf(3)
    loss = value.exp().sum()
    graph = backbind.trace(loss)
    graph()
    assert value.grad is None
    loss.backward()
    assert same_bits(value.grad, graph()[0])


def test_a_tensor_that_several_nodes_saved_is_one_buffer() -> None:
    value = leaf(3)
    factor = torch.arange(3.0)
    loss = (value * factor).exp().sum() + (value * factor).sin().sum()
    graph = backbind.trace(loss)
    assert sum(torch.equal(buffer, factor) for _, buffer in graph.named_buffers()) == 1


def test_the_graph_consists_of_operators() -> None:
    value = leaf(3)
    graph = backbind.trace((value * value).sum())
    called = [node.name for node in graph.graph.nodes if node.op == "call_function"]
    assert called == [
        "root",
        "sum_backward0",
        "sum_backward0_self",
        "mul_backward0",
        "mul_backward0_self",
        "mul_backward0_self_fit",
        "mul_backward0_other",
        "mul_backward0_other_fit",
        "total",
    ]


def test_a_pickled_graph_runs_in_a_fresh_process(tmp_path: Path) -> None:
    loss, inputs = transformer()
    graph = backbind.trace(loss, inputs)
    stored, results = tmp_path / "graph.pickle", tmp_path / "gradients.pt"
    stored.write_bytes(pickle.dumps(graph))
    program = (
        "import pickle, torch\n"
        # As many threads as here: they decide how sums are split, and so how they round.
        f"torch.set_num_threads({torch.get_num_threads()})\n"
        f"graph = pickle.load(open({str(stored)!r}, 'rb'))\n"
        f"torch.save(graph(), {str(results)!r})\n"
    )
    run_python("-c", program, env={"PYTHONPATH": str(RUNTIME)})
    again = torch.load(results)
    assert all(same_bits(one, other) for one, other in zip(again, graph(), strict=True))


def test_a_graph_compiles_whole() -> None:
    loss, inputs = broadcast_both_ways()
    graph = backbind.trace(loss, inputs)
    compiled = torch.compile(graph, backend="aot_eager", fullgraph=True)
    assert all(same_bits(one, other) for one, other in zip(compiled(), graph(), strict=True))


# ---------------------------------------------------------------------------------------------------- what is refused

TAIL = "\nremove the hooks, or leave such nodes out of the graph"


def refusal(outputs: torch.Tensor, inputs: list[torch.Tensor] | None = None) -> str:
    with pytest.raises(backbind.TraceError) as caught:
        backbind.trace(outputs, inputs)
    head = "this backward cannot be traced yet, because of\n"
    text = str(caught.value)
    assert text.startswith(head)
    assert text.endswith(TAIL)
    return text.removeprefix(head).removesuffix(TAIL)


def test_hooks_are_refused_by_kind() -> None:
    value = leaf(3)
    inner = value.exp()
    loss = (inner * 2).sum()
    inner.register_hook(lambda gradient: None)
    inner.retain_grad()
    inner.grad_fn.register_prehook(lambda gradients: None)  # type: ignore[union-attr]
    inner.grad_fn.register_hook(lambda inputs, outputs: None)  # type: ignore[union-attr]
    value.register_hook(lambda gradient: None)
    value.register_post_accumulate_grad_hook(lambda tensor: None)
    assert refusal(loss).splitlines() == [
        "  step 2, ExpBackward0: tensor hook, retained gradient, node pre-hook, node post-hook",
        "  step 3, torch::autograd::AccumulateGrad: tensor hook, post-accumulate-grad hook",
    ]


class Doubled(torch.autograd.Function):
    """A Python function."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, value: torch.Tensor) -> torch.Tensor:
        return value * 2

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0] * 2


def test_python_functions_are_refused_by_name() -> None:
    value = leaf(3)
    loss = Doubled.apply(value).sum()  # type: ignore[no-untyped-call]
    assert refusal(loss) == "  step 1, DoubledBackward: made by no entry of derivatives.yaml"


def test_copies_of_slices_are_refused_by_name() -> None:
    value = leaf(3)
    copy = value.clone()
    copy[0] = 1.0
    assert (
        refusal(copy.sum()) == "  step 1, torch::autograd::CopySlices: made by no entry of derivatives.yaml"
    )


def test_what_is_not_on_the_way_is_not_refused() -> None:
    value, other = leaf(3), leaf(3)
    loss = (value.exp() + Doubled.apply(other)).sum()  # type: ignore[no-untyped-call]
    traced = backbind.trace(loss, [value])()
    assert same_bits(traced[0], eager_gradients(loss, [value])[0])


def test_a_freed_graph_raises_eagers_error() -> None:
    value = leaf(3)
    loss = value.exp().sum()
    loss.backward()
    with pytest.raises(RuntimeError) as eager:
        loss.backward()
    with pytest.raises(RuntimeError) as traced:
        backbind.trace(loss)
    assert str(traced.value) == str(eager.value)


def test_a_tensor_changed_in_place_raises_eagers_error() -> None:
    value = leaf(3)
    inner = value.exp()
    loss = inner.sum()
    with torch.no_grad():
        inner.add_(1)
    with pytest.raises(RuntimeError) as eager:
        loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError) as traced:
        backbind.trace(loss)
    assert str(traced.value) == str(eager.value)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (3, "outputs must be a tensor or a list or tuple of tensors, got int"),
        ("ab", "outputs must be a tensor or a list or tuple of tensors, got str"),
    ],
)
def test_outputs_that_are_no_tensors(outputs: object, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        backbind.trace(outputs)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_outputs_without_grad() -> None:
    with pytest.raises(RuntimeError) as caught:
        backbind.trace(torch.ones(1))
    assert str(caught.value) == "element 0 of roots does not require grad and has no grad_fn"
