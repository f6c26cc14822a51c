"""A traced backward gives eager's gradients, bit for bit."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import backbind
import pytest
import torch
from torch import nn

from tests.graph.gradients import assert_traces, differences, eager_gradients, leaf, same_bits
from tests.plan.random_programs import run_program
from tests.processes import run_python

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_equal_eager(seed: int) -> None:
    program = run_program(seed)
    assert_traces(program.loss, list(program.leaves))


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
    assert_traces(loss, inputs)


def test_gradients_of_several_outputs_are_arguments() -> None:
    value = leaf(3, 2)
    outputs = [value.sin(), value.cos().sum(dim=0)]
    given = [torch.full((3, 2), 0.5), torch.tensor([1.0, -2.0])]
    graph = backbind.trace(outputs, [value])
    expected = torch.autograd.grad(outputs, [value], given, retain_graph=True)
    assert differences(graph(*given), expected) == {}


def test_without_inputs_the_leaves_are_returned_in_order() -> None:
    program = run_program(7)
    leaves = backbind.leaves(program.loss)
    traced = backbind.trace(program.loss)()
    assert len(traced) == len(leaves)
    assert differences(traced, eager_gradients(program.loss, leaves)) == {}


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
        "root_validated",
        "sum_backward0",
        "sum_backward0_self",
        "sum_backward0_self_validated",
        "mul_backward0",
        "mul_backward0_self",
        "mul_backward0_self_validated",
        "mul_backward0_other",
        "mul_backward0_other_validated",
        "total",
    ]


def test_buffers_are_called_after_the_argument_that_saved_them_first() -> None:
    value, factor = leaf(3), torch.ones(3)
    loss = (value.exp() * factor).sum() + (value.sin() * factor * 2.0).sum()
    graph = backbind.trace(loss, [value])
    assert [name for name, _ in graph.named_buffers()] == [
        "implicit_gradient_0",
        "mul_backward0_saved_other",
        "mul_backward0_saved_other_1",
        "sin_backward0_saved_self",
        "exp_backward0_saved_result",
    ]


def test_keys_of_a_mapping_are_names_of_gradients_and_buffers() -> None:
    weight, scale, other = leaf(2, 3), leaf(3), leaf(2, 3)
    inner = weight * scale
    inputs = {"layer.0.weight": weight, "scale": scale, "the same": scale, "": inner, "é": other}
    graph = backbind.trace((inner * other).sum(), inputs)
    assert [name for name, _ in graph.named_buffers()] == [
        "implicit_gradient_0",
        "saved_input_4",
        "saved_input_3",
        "saved_scale",
        "saved_layer_0_weight",
    ]
    (output,) = graph.graph.find_nodes(op="output")
    results = {key: node.name for key, node in output.args[0].items()}
    assert results == {
        "layer.0.weight": "grad_layer_0_weight",
        "scale": "grad_scale",
        "the same": "grad_scale",
        "": "grad_input_3",
        "é": "grad_input_4",
    }


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
    assert differences(again, graph()) == {}


def test_a_graph_compiles_whole() -> None:
    loss, inputs = broadcast_both_ways()
    graph = backbind.trace(loss, inputs)
    compiled = torch.compile(graph, backend="aot_eager", fullgraph=True)
    assert differences(compiled(), graph()) == {}
