"""Hooks of saved tensors: a graph calls them at each run, a trace calls each once where it is told to, or none."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import backbind
import pytest
import torch
from backbind.graph import calls
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode

from tests.graph.foreign_programs import Noted, applied
from tests.graph.gradients import differences, eager_gradients, leaf


class Counted:
    """Pure hooks, which count how often each tensor is unpacked."""

    def __init__(self) -> None:
        self.unpacked: Counter[int] = Counter()
        self.packed = 0

    def pack(self, tensor: torch.Tensor) -> tuple[int, Any]:
        self.packed += 1
        return self.packed, tensor.detach().numpy().copy()

    def unpack(self, packed: tuple[int, Any]) -> torch.Tensor:
        self.unpacked[packed[0]] += 1
        return torch.from_numpy(packed[1])

    def loss(self) -> tuple[torch.Tensor, list[torch.Tensor]]:
        value, weight = leaf(3, 4), leaf(4, 2)
        with saved_tensors_hooks(self.pack, self.unpack):
            return (value @ weight).tanh().square().sum(), [value, weight]


def test_a_graph_calls_them_at_each_run() -> None:
    counted = Counted()
    loss, inputs = counted.loss()
    graph = backbind.trace(loss, inputs)
    assert not counted.unpacked
    for runs in (1, 2):
        traced = graph()
        assert counted.unpacked == dict.fromkeys(range(1, counted.packed + 1), runs)
    assert differences(traced, eager_gradients(loss, inputs)) == {}


def test_a_graph_unpacks_once_for_each_node_that_saved_some() -> None:
    counted = Counted()
    loss, inputs = counted.loss()
    graph = backbind.trace(loss, inputs)
    unpacking = [node for node in graph.graph.nodes if node.target is calls.unpack]
    assert [node.name for node in unpacking] == [
        "pow_backward0_unpacked",
        "tanh_backward0_unpacked",
        "mm_backward0_unpacked",
    ]
    assert [name for name, _ in graph.named_buffers()] == [
        "implicit_gradient_0"
    ]  # the gradient that a backward begins with


def test_a_function_calls_those_of_its_own_at_each_run() -> None:
    """A graph cannot give a function what it saved, so it is the function that unpacks it, whatever a trace did."""
    counted = Counted()
    value = leaf(3)
    log: list[str] = []
    with saved_tensors_hooks(counted.pack, counted.unpack):
        loss = applied(Noted, value.exp(), log).sum()
    graph = backbind.trace(loss, [value], unpack_hooks=True)
    of_exp, of_function = 1, 2
    assert counted.unpacked == {of_exp: 1}
    for runs in (1, 2):
        traced = graph()
        assert counted.unpacked == {of_exp: 1, of_function: runs}
    assert differences(traced, eager_gradients(loss, [value])) == {}


def test_a_trace_that_fails_at_another_saved_tensor_calls_none() -> None:
    counted = Counted()
    loss, inputs = counted.loss()
    changed = inputs[0].exp()
    total = loss + changed.sum()
    with torch.no_grad():
        changed.add_(1)
    with pytest.raises(RuntimeError):
        backbind.trace(total, inputs, unpack_hooks=True)
    assert not counted.unpacked


def test_hooks_that_may_be_called_are_called_once() -> None:
    counted = Counted()
    loss, inputs = counted.loss()
    graph = backbind.trace(loss, inputs, unpack_hooks=True)
    assert set(counted.unpacked.values()) == {1}
    assert len(counted.unpacked) == counted.packed
    traced = graph()
    assert set(counted.unpacked.values()) == {1}
    assert differences(traced, eager_gradients(loss, inputs)) == {}


def test_a_node_of_which_one_saved_tensor_has_a_hook() -> None:
    value, other = leaf(3), leaf(3)
    product = value * other
    assert product.grad_fn is not None
    raw: Any = product.grad_fn._raw_saved_self  # type: ignore[attr-defined]
    raw.register_hooks(lambda tensor: tensor.clone(), lambda tensor: tensor)
    for unpack_hooks in (False, True):
        graph = backbind.trace(product.sum(), [value, other], unpack_hooks=unpack_hooks)
        assert differences(graph(), eager_gradients(product.sum(), [value, other])) == {}


def test_tensors_saved_on_the_cpu() -> None:
    value = leaf(3)
    with save_on_cpu():
        loss = value.exp().sin().sum()
    graph = backbind.trace(loss, [value], unpack_hooks=True)
    assert differences(graph(), eager_gradients(loss, [value])) == {}


def test_what_a_hook_gave_may_change_as_in_eager() -> None:
    value = leaf(3)
    with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        loss = value.square().sum()
    graph = backbind.trace(loss, [value], unpack_hooks=True)
    with torch.no_grad():
        value.mul_(2)
    assert differences(graph(), eager_gradients(loss, [value])) == {}


@pytest.mark.parametrize("unpack_hooks", [False, True], ids=["by the graph", "by the trace"])
def test_hooks_are_called_from_within_a_backward_and_see_the_modes(unpack_hooks: bool) -> None:
    seen = []

    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        seen.append((torch._C._current_graph_task_id(), torch.is_grad_enabled(), len(modes())))
        return tensor

    value = leaf(3)
    with saved_tensors_hooks(lambda tensor: tensor, unpack):
        loss = value.exp().sin().sum()
    with FlopCounterMode(display=False):
        graph = backbind.trace(loss, [value], unpack_hooks=unpack_hooks)
        graph()
    assert len(seen) == 2
    assert len(set(seen)) == 1
    task, grad_mode, number_of_modes = seen[0]
    assert (task != -1, grad_mode, number_of_modes) == (True, False, 1)


def modes() -> list[object]:
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    return list(_get_current_dispatch_mode_stack())


def test_the_error_of_a_hook_is_the_users() -> None:
    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        raise KeyError("lost")

    value = leaf(3)
    with saved_tensors_hooks(lambda tensor: tensor, unpack):
        loss = value.exp().sum()
    with pytest.raises(KeyError, match="lost"):
        backbind.trace(loss, [value], unpack_hooks=True)


# --------------------------------------------------------------------------------------------------------- checkpoints


class Layers(nn.Module):
    """Some layers that count how often they run, one of which keeps statistics."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.last = nn.Linear(4, 4)
        self.runs = 0

    def tracked(self) -> int:
        assert self.norm.num_batches_tracked is not None
        return int(self.norm.num_batches_tracked)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        self.runs += 1
        inner: torch.Tensor = self.norm(self.first(value)).tanh()
        result: torch.Tensor = self.last(inner)
        return result


def must_save_products(context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    if operator == torch.ops.aten.addmm.default:
        return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


SELECTIVE = functools.partial(create_selective_checkpoint_contexts, must_save_products)


@pytest.mark.parametrize("selective", [False, True], ids=["whole", "selective"])
def test_a_trace_leaves_a_checkpoint_as_it_was(selective: bool) -> None:
    layers = Layers()
    extra: dict[str, Any] = {"context_fn": SELECTIVE} if selective else {}
    loss = checkpoint(layers, torch.ones(8, 4), use_reentrant=False, **extra).sum()
    before = (layers.runs, layers.tracked())
    backbind.trace(loss, list(layers.parameters()))
    assert (layers.runs, layers.tracked()) == before
    loss.backward()
    assert all(one.grad is not None for one in layers.parameters())


def test_a_checkpoint_recomputes_once_for_each_run_of_a_graph() -> None:
    layers = Layers()
    loss = checkpoint(layers, torch.ones(8, 4), use_reentrant=False).sum()
    parameters = list(layers.parameters())
    graph = backbind.trace(loss, parameters)
    for runs in (1, 2):
        traced = graph()
        assert layers.runs == 1 + runs
    assert differences(traced, eager_gradients(loss, parameters)) == {}


def test_a_selective_checkpoint_allows_one_backward_or_one_trace() -> None:
    """As in eager: what it kept is let go of when it is used."""

    def made() -> tuple[torch.Tensor, list[nn.Parameter]]:
        layers = Layers()
        loss = checkpoint(layers, torch.ones(8, 4), use_reentrant=False, context_fn=SELECTIVE).sum()
        return loss, list(layers.parameters())

    loss, parameters = made()
    eager = eager_gradients(loss, parameters)
    with pytest.raises(RuntimeError) as second:
        eager_gradients(loss, parameters)

    loss, parameters = made()
    graph = backbind.trace(loss, parameters)
    assert differences(graph(), eager) == {}
    with pytest.raises(RuntimeError) as of_graph:
        graph()
    assert str(of_graph.value) == str(second.value)

    loss, parameters = made()
    graph = backbind.trace(loss, parameters, unpack_hooks=True)
    for _ in range(2):
        assert differences(graph(), eager) == {}


def test_a_checkpoint_recomputes_once_where_its_hooks_may_be_called() -> None:
    layers = Layers()
    loss = checkpoint(layers, torch.ones(8, 4), use_reentrant=False).sum()
    assert isinstance(loss, torch.Tensor)
    graph = backbind.trace(loss, dict(layers.named_parameters()), unpack_hooks=True)
    assert layers.runs == 2
    traced = graph()
    assert layers.runs == 2
    loss.backward()  # the live graph is as usable as after another backward
    eager = [one.grad for one in layers.parameters()]
    assert differences(list(traced.values()), eager) == {}
