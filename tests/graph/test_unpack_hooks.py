"""Hooks of saved tensors are a user's code: none is called unasked, and each once where they may be."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import backbind
import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from tests.graph.gradients import differences, eager_gradients, leaf
from tests.graph.test_refusals import Doubled

ADVICE = (
    "\nunpack hooks (of torch.autograd.graph.saved_tensors_hooks, save_on_cpu, checkpoint) are a user's code, which "
    "may recompute and change things: trace(..., unpack_hooks=True) calls each once, as one backward would;"
    "\nbackbind.capture() runs all of this as eager does"
)


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


def refusal(outputs: torch.Tensor, inputs: list[torch.Tensor]) -> str:
    with pytest.raises(backbind.TraceError) as caught:
        backbind.trace(outputs, inputs)
    return str(caught.value)


def test_hooks_are_refused_by_node_and_not_called() -> None:
    counted = Counted()
    loss, inputs = counted.loss()
    assert refusal(loss, inputs) == (
        "this backward cannot be traced, because of\n"
        "  step 1, PowBackward0: saved tensors with unpack hooks\n"
        "  step 2, TanhBackward0: saved tensors with unpack hooks\n"
        "  step 3, MmBackward0: saved tensors with unpack hooks" + ADVICE
    )
    assert not counted.unpacked


def test_a_trace_that_is_refused_for_something_else_calls_none() -> None:
    counted = Counted()
    loss, inputs = counted.loss()
    with pytest.raises(backbind.TraceError):
        backbind.trace(Doubled.apply(loss), inputs, unpack_hooks=True)  # type: ignore[no-untyped-call]
    assert not counted.unpacked


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
    assert "step 1, MulBackward0: saved tensors with unpack hooks" in refusal(product.sum(), [value, other])
    graph = backbind.trace(product.sum(), [value, other], unpack_hooks=True)
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


def test_hooks_are_called_from_within_a_backward_and_see_the_modes() -> None:
    seen = []

    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        seen.append((torch._C._current_graph_task_id(), torch.is_grad_enabled(), len(modes())))
        return tensor

    value = leaf(3)
    with saved_tensors_hooks(lambda tensor: tensor, unpack):
        loss = value.exp().sin().sum()
    with torch.utils.flop_counter.FlopCounterMode(display=False):
        backbind.trace(loss, [value], unpack_hooks=True)
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
def test_a_checkpoint_is_refused_and_as_it_was(selective: bool) -> None:
    layers = Layers()
    extra: dict[str, Any] = {"context_fn": SELECTIVE} if selective else {}
    loss = checkpoint(layers, torch.ones(8, 4), use_reentrant=False, **extra).sum()
    before = (layers.runs, layers.tracked())
    assert "saved tensors with unpack hooks" in refusal(loss, list(layers.parameters()))
    assert (layers.runs, layers.tracked()) == before
    loss.backward()
    assert all(one.grad is not None for one in layers.parameters())


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
