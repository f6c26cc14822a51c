"""torch.export and tracing before dispatch: of operators some of whose results are undefined, and of traced graphs."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import backbind
import pytest
import torch
from torch import nn
from torch.export import ExportedProgram
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

from tests.graph.gradients import differences, leaf
from tests.graph.test_trace import PROGRAMS
from tests.ops.node_set import NODE_SET, NodeCase


@pytest.fixture(autouse=True)
def without_advice() -> Iterator[None]:
    """The exporter's warnings and logs are not what is tested."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(before)


class Call(nn.Module):
    """Calls an operator and gives those of its results that are defined."""

    def __init__(self, operator: Any, arguments: tuple[Any, ...]) -> None:
        super().__init__()
        self.operator = operator
        self.arguments = arguments

    def forward(self, *grads: torch.Tensor | None) -> list[torch.Tensor]:
        return [one for one in self.operator(list(grads), *self.arguments) if one is not None]


def calls(case: NodeCase) -> Iterator[tuple[str, Call, tuple[torch.Tensor | None, ...]]]:
    """Calls of a node's operator, each with another result or gradient left out."""
    made = case.make()
    needed, *saved = made.packed
    operator = made.operator.overload
    grads = tuple(made.grads)
    for left_out in range(len(needed)):
        mask = [flag and position != left_out for position, flag in enumerate(needed)]
        if any(mask):
            yield f"without result {left_out}", Call(operator, (mask, *saved)), grads
    if len(grads) > 1:
        for left_out in range(len(grads)):
            some = tuple(None if position == left_out else one for position, one in enumerate(grads))
            yield f"without gradient {left_out}", Call(operator, (needed, *saved)), some


CASES = [case for case in NODE_SET if any(True for _ in calls(case))]


def test_the_set_has_nodes_with_several_results_and_gradients() -> None:
    kinds = {name.split(" ")[1] for case in CASES for name, _, _ in calls(case)}
    assert kinds == {"result", "gradient"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_undefined_results_pass_through_tracing_before_dispatch(case: NodeCase) -> None:
    for name, call, grads in calls(case):
        given = tuple(one for one in grads if one is not None)

        def with_given(*given: torch.Tensor, call: Call = call, grads: Any = grads) -> list[torch.Tensor]:
            remaining = iter(given)
            results: list[torch.Tensor] = call(*(None if one is None else next(remaining) for one in grads))
            return results

        expected = call(*grads)
        traced = make_fx(with_given, pre_dispatch=True)(*given)
        assert differences(traced(*given), expected) == {}, name


@pytest.mark.parametrize("strict", [False, True], ids=["nonstrict", "strict"])
@pytest.mark.parametrize("case", CASES[:3], ids=str)
def test_undefined_results_are_exported(case: NodeCase, strict: bool) -> None:
    name, call, grads = next(calls(case))
    program = torch.export.export(call, grads, strict=strict)
    assert differences(program.module()(*grads), call(*grads)) == {}, name
    assert differences(program.run_decompositions().module()(*grads), call(*grads)) == {}, name
    assert differences(saved_and_loaded(program).module()(*grads), call(*grads)) == {}, name


@pytest.mark.parametrize("case", CASES, ids=str)
def test_undefined_results_pass_through_modes_in_inference_mode(case: NodeCase) -> None:
    for name, call, grads in calls(case):
        expected = call(*grads)
        with torch.inference_mode(), FlopCounterMode(display=False):
            assert differences(call(*grads), expected) == {}, name


def saved_and_loaded(program: ExportedProgram) -> ExportedProgram:
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


# --------------------------------------------------------------------------------------------------- traced graphs


def by_a_number() -> tuple[torch.Tensor, list[torch.Tensor]]:
    value = leaf(3)
    return (value * 2.0).sum(), [value]


def by_a_constant() -> tuple[torch.Tensor, list[torch.Tensor]]:
    value = leaf(3)
    return (value * torch.ones(3)).sum(), [value]


def a_network() -> tuple[torch.Tensor, list[torch.Tensor]]:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    return network(torch.randn(2, 1, 4, 4)).square().mean(), list(network.parameters())


def some_results_unused() -> tuple[torch.Tensor, list[torch.Tensor]]:
    value = leaf(4, 4)
    first, *_ = value.unbind()
    return torch.linalg.svd(value)[2].abs().sum() + first.sum(), [value]


@pytest.mark.parametrize("strict", [False, True], ids=["nonstrict", "strict"])
@pytest.mark.parametrize(
    "program",
    [by_a_number, by_a_constant, a_network, some_results_unused],
    ids=lambda program: program.__name__,
)
def test_a_traced_graph_is_exported(program: Any, strict: bool) -> None:
    loss, inputs = program()
    graph = backbind.trace(loss, inputs)
    exported = torch.export.export(graph, (), strict=strict)
    assert differences(exported.module()(), graph()) == {}
    assert differences(saved_and_loaded(exported).module()(), graph()) == {}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_every_traced_graph_is_exported(program: Any) -> None:
    loss, inputs = program()
    graph = backbind.trace(loss, inputs, allow_unused=True)
    # As a graph runs: in grad mode a recurrent layer of oneDNN is exported as calls that can be differentiated again,
    # and round otherwise.
    with torch.no_grad():
        exported = torch.export.export(graph, (), strict=False)
    assert differences(exported.module()(), graph()) == {}


@pytest.mark.parametrize("strict", [False, True], ids=["nonstrict", "strict"])
def test_gradients_of_outputs_are_inputs_of_the_program(strict: bool) -> None:
    value = leaf(3, 2)
    graph = backbind.trace([value.sin(), value.cos().sum(dim=0)], [value])
    given = (torch.full((3, 2), 0.5), torch.tensor([1.0, -2.0]))
    others = tuple(2 * one for one in given)
    program = torch.export.export(graph, given, strict=strict)
    for gradients in (given, others):
        assert differences(program.module()(*gradients), graph(*gradients)) == {}
        assert differences(saved_and_loaded(program).module()(*gradients), graph(*gradients)) == {}


@pytest.mark.parametrize("strict", [False, True], ids=["nonstrict", "strict"])
def test_a_dict_of_gradients_is_exported(strict: bool) -> None:
    weight, bias = leaf(2, 3), leaf(2)
    loss = nn.functional.linear(torch.ones(4, 3), weight, bias).tanh().sum()
    graph = backbind.trace(loss, {"layer.weight": weight, "layer.bias": bias})
    found = saved_and_loaded(torch.export.export(graph, (), strict=strict)).module()()
    assert list(found) == ["layer.weight", "layer.bias"]
    assert differences(list(found.values()), list(graph().values())) == {}


@pytest.mark.parametrize("strict", [False, True], ids=["nonstrict", "strict"])
def test_a_loaded_graph_is_exported(strict: bool, tmp_path: Path) -> None:
    loss, inputs = a_network()
    graph = backbind.trace(loss, inputs)
    backbind.save(graph, tmp_path / "graph")
    program = torch.export.export(backbind.load(tmp_path / "graph"), (), strict=strict)
    assert differences(saved_and_loaded(program).module()(), graph()) == {}
