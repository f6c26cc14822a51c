"""torch.export and tracing before dispatch: of operators some of whose results are undefined, and of traced graphs."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import backbind
import pytest
import torch
from torch import nn
from torch.export import ExportedProgram
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

from tests.graph.gradients import differences, leaf
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
