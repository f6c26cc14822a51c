"""A graph as the text of a Python module: it runs alone, and gives the bits that the graph gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import backbind
import pytest
import torch
from backbind.trace import TracedBackward

from tests.graph import foreign_programs
from tests.graph.gradients import differences, eager_gradients, leaf
from tests.graph.test_arguments import raised
from tests.graph.test_trace import PROGRAMS
from tests.ops.node_set import NODE_SET, NodeCase
from tests.processes import run_python

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"


def module(graph: TracedBackward, **options: Any) -> Any:
    """The module of the text, which is the same each time."""
    text = graph.to_source(**options)
    assert graph.to_source(**options) == text
    scope: dict[str, Any] = {}
    exec(compile(text, "backward.py", "exec"), scope)
    return SimpleNamespace(**scope)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_text_gives_what_the_graph_gives(
    program: Callable[[], tuple[torch.Tensor, list[torch.Tensor]]],
) -> None:
    loss, inputs = program()
    graph = backbind.trace(loss, inputs, allow_unused=True)
    made = module(graph)
    constants = dict(graph.named_buffers())
    assert tuple(constants) == made.SAVED
    assert differences(made.backward(constants), eager_gradients(loss, inputs)) == {}


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_arguments_of_every_type_have_a_text(case: NodeCase) -> None:
    made = case.make()
    graph = backbind.trace(list(made.outputs), list(made.inputs), allow_unused=True)
    found = module(graph).backward(dict(graph.named_buffers()), *made.grads)
    assert differences(found, graph(*made.grads)) == {}


@pytest.mark.parametrize("alpha", [complex("inf"), complex(0.5, float("nan")), 2j, float("inf"), -0.0, -0j])
def test_numbers_have_a_text(alpha: complex) -> None:
    value, other = leaf(3, dtype=torch.complex64), leaf(3, dtype=torch.complex64)
    graph = backbind.trace(torch.add(value, other, alpha=alpha), [value, other])
    given = leaf(3, dtype=torch.complex64).detach()
    assert differences(module(graph).backward(dict(graph.named_buffers()), given), graph(given)) == {}


TEXT = '''\
import torch
from backbind.graph.traced_backward import check_gradients, check_used  # which brings the operators

ops = torch.ops.backbind

# What the forward saved: 4 tensors.
SAVED = (
    "implicit_gradient_0",  # float32 []
    "mul_backward0_saved_other",  # a number, which does not decide about dtypes
    "saved_a_key",  # float32 [3]
    "saved_layer_weight",  # float32 [2, 3]
)


@torch.no_grad()
def backward(saved, gradient_0=None):
    """A dict of gradients."""
    check_gradients((gradient_0,))
    root = ops.root_gradient(gradient_0, saved["implicit_gradient_0"], [], torch.float32, 0)
    root_validated = ops.validate_grad(root, [], torch.float32)
    del root
    # SumBackward0
    sum_backward0 = ops.SumBackward0([root_validated], [True], [2, 3])
    del root_validated
    sum_backward0_self = sum_backward0[0]
    del sum_backward0
    sum_backward0_self_validated = ops.validate_grad(sum_backward0_self, [2, 3], torch.float32)
    del sum_backward0_self
    # MulBackward0
    mul_backward0 = ops.MulBackward0(
        [sum_backward0_self_validated],
        [True, False],
        saved["mul_backward0_saved_other"],
        torch.float64,
        None,
        torch.float32,
    )
    del sum_backward0_self_validated
    mul_backward0_self = mul_backward0[0]
    del mul_backward0
    mul_backward0_self_validated = ops.validate_grad(mul_backward0_self, [2, 3], torch.float32)
    del mul_backward0_self
    mul_backward0_1 = ops.MulBackward0(
        [mul_backward0_self_validated],
        [True, True],
        saved["saved_a_key"],
        torch.float32,
        saved["saved_layer_weight"],
        torch.float32,
    )
    del mul_backward0_self_validated
    mul_backward0_self_1 = mul_backward0_1[0]
    grad_layer_weight = ops.validate_grad(mul_backward0_self_1, [2, 3], torch.float32)
    del mul_backward0_self_1
    mul_backward0_other = mul_backward0_1[1]
    del mul_backward0_1
    grad_a_key = ops.validate_grad(mul_backward0_other, [3], torch.float32)
    del mul_backward0_other
    gradients = {
        "layer.weight": grad_layer_weight,
        'a "key"': grad_a_key,
    }
    check_used(gradients.values())
    return gradients
'''


def test_a_text_is_to_be_read() -> None:
    weight, scale = leaf(2, 3), leaf(3)
    keys = {"layer.weight": weight, 'a "key"': scale}
    graph = backbind.trace((weight * scale * 0.5).sum(), keys)
    assert graph.to_source().partition('"""\n\n')[2] == TEXT


def test_a_text_runs_alone(tmp_path: Path) -> None:
    loss, inputs = PROGRAMS[-1]()
    graph = backbind.trace(loss, inputs)
    backbind.save(graph, tmp_path / "graph.safetensors")
    text = (
        f"{graph.to_source()}\n\n"
        "import backbind\n"
        f"torch.set_num_threads({torch.get_num_threads()})\n"
        f"saved = dict(backbind.load({str(tmp_path / 'graph.safetensors')!r}).named_buffers())\n"
        f"torch.save(backward(saved), {str(tmp_path / 'gradients.pt')!r})\n"
    )
    (tmp_path / "backward.py").write_text(text)
    run_python(tmp_path / "backward.py", env={"PYTHONPATH": str(RUNTIME)})
    assert differences(torch.load(tmp_path / "gradients.pt"), graph()) == {}


def test_a_loaded_graph_has_the_same_text(tmp_path: Path) -> None:
    loss, inputs = PROGRAMS[-1]()
    graph = backbind.trace(loss, inputs)
    backbind.save(graph, tmp_path / "graph")
    assert backbind.load(tmp_path / "graph").to_source() == graph.to_source()


@pytest.mark.parametrize("given", [None, torch.ones(2), torch.ones(3, dtype=torch.complex64), 3])
def test_wrong_gradients_are_refused_in_the_same_words(given: Any) -> None:
    value = leaf(3)
    graph = backbind.trace(value * value, value)
    backward = module(graph).backward
    assert raised(lambda: backward(dict(graph.named_buffers()), given)) == raised(lambda: graph(given))


def test_an_input_that_turns_out_unused_is_refused_in_the_same_words() -> None:
    value, weight = leaf(1, 1, 4, 4), leaf(1, 1, 2, 2)
    output = torch.nn.functional.conv2d(value, weight)
    (gradient,) = torch.autograd.grad(output.sum(), value, create_graph=True)
    graph = backbind.trace(gradient.square().sum(), {"value": value})
    backward = module(graph).backward
    assert raised(lambda: backward(dict(graph.named_buffers()))) == raised(graph)


def test_hooks_have_no_text() -> None:
    loss, inputs = foreign_programs.tensor_hooks([])
    graph = backbind.trace(loss, inputs)
    assert raised(graph.to_source) == (
        TypeError,
        "this graph holds what means nothing outside of this process:\n"
        "  SumBackward0: tensor hook\n"
        "  ExpBackward0: tensor hook\n"
        "  torch::autograd::AccumulateGrad: tensor hook\n"
        "hooks='drop' leaves the hooks out",
    )
    value = leaf(3)
    inner = value.exp()
    expected = torch.autograd.grad((inner * inner.sin()).sum(), [value])
    assert differences(module(graph, hooks="drop").backward(dict(graph.named_buffers())), expected) == {}


def test_a_changed_tensor_is_noticed() -> None:
    value = leaf(3)
    graph = backbind.trace(value.square().sum(), [value])
    with torch.no_grad():
        value.add_(1)
    assert raised(graph.to_source) == raised(graph)
