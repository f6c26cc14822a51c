"""When a plan fits another graph and when it does not, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import backbind
import pytest
import torch

from tests.replay.differential import apply


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (3,)), requires_grad=True)


def _grad(loss: torch.Tensor, *inputs: torch.Tensor) -> None:
    torch.autograd.grad(loss, inputs, allow_unused=True)


def _loss(value: torch.Tensor) -> torch.Tensor:
    """A number behind eight steps that never change, so that most of a plan fits whatever lies before them."""
    value = value.sum()
    for _ in range(8):
        value = value.tanh()
    return value


def _product(
    first: Callable[[torch.Tensor], torch.Tensor], late: bool, x: torch.Tensor, y: torch.Tensor
) -> None:
    if late:
        right = y.cos()
        left = first(x)
    else:
        left = first(x)
        right = y.cos()
    _loss(left * right).backward()


def _roots(*roots: torch.Tensor) -> None:
    torch.autograd.backward(roots)


def _same(x: torch.Tensor) -> torch.Tensor:
    hidden = x.sin()
    return _loss(hidden * hidden)


def _unbound(rows: int) -> None:
    parts = leaf(rows, 3).unbind(0)
    _loss(parts[0] * parts[1]).backward()


def _inputs(order: Sequence[int], used: Sequence[int] = (0, 1)) -> None:
    leaves = [leaf(), leaf(), leaf()]
    loss = _loss(leaves[used[0]].sin() * leaves[used[1]].cos())
    _grad(loss, *(leaves[i] for i in order))


class _Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad


CHANGES: dict[str, tuple[Callable[[], object], Callable[[], object], str]] = {
    "other node": (
        lambda: _loss(leaf().sin()).backward(),
        lambda: _loss(leaf().cos()).backward(),
        "step 9: CosBackward0 where SinBackward0 was",
    ),
    "other edge": (
        lambda: _same(leaf()).backward(),
        lambda: _loss(leaf().sin() * leaf().sin()).backward(),
        "step 9: MulBackward0, whose forward takes a tensor from another place than before",
    ),
    "an input that needs no gradient": (
        lambda: _loss(leaf() * leaf()).backward(),
        lambda: _loss(leaf() * leaf().detach()).backward(),
        "step 9: MulBackward0, whose forward takes a tensor that does not require grad, and did before",
    ),
    "an input that needs a gradient": (
        lambda: _loss(leaf() * leaf().detach()).backward(),
        lambda: _loss(leaf() * leaf()).backward(),
        "step 9: MulBackward0, whose forward takes a tensor that requires grad, and did not before",
    ),
    "another number of edges": (
        lambda: _loss(torch.stack([leaf(), leaf()])).backward(),
        lambda: _loss(torch.stack([leaf(), leaf(), leaf()])).backward(),
        "step 9: StackBackward0, whose forward takes another number of tensors than before",
    ),
    "another number of outputs": (
        lambda: _unbound(2),
        lambda: _unbound(3),
        "step 10: UnbindBackward0, whose forward returns another number of tensors than before",
    ),
    "another output": (
        lambda: (lambda parts: _loss(parts[0].sin()).backward())(leaf(3, 2).unbind(0)),
        lambda: (lambda parts: _loss(parts[1].sin()).backward())(leaf(3, 2).unbind(0)),
        "step 9: SinBackward0, whose forward takes a tensor from another place than before",
    ),
    "other order": (
        lambda: _product(torch.sin, False, leaf(), leaf()),
        lambda: _product(torch.sin, True, leaf(), leaf()),
        "step 12: SinBackward0, whose forward ran before others that it ran behind before, or the other way round",
    ),
    "one leaf where there were two": (
        lambda: _loss(leaf().sin() * leaf().sin()).backward(),
        lambda: (lambda x: _loss(x.sin() * x.sin()).backward())(leaf()),
        "step 13: AccumulateGrad, once where there were two: one tensor is used in the place of two different ones",
    ),
    "two leaves where there was one": (
        lambda: (lambda x: _loss(x.sin() * x.sin()).backward())(leaf()),
        lambda: _loss(leaf().sin() * leaf().sin()).backward(),
        "step 11: SinBackward0, whose forward takes a tensor from another place than before",
    ),
    "other roots": (
        lambda: (lambda loss: _roots(loss, loss))(leaf().sum()),
        lambda: _roots(leaf().sum(), leaf().sum()),
        "the tensors that backward() was called on are the same ones, or depend on one another, in another way",
    ),
    "inputs in other order": (
        lambda: _inputs([0, 1]),
        lambda: _inputs([1, 0]),
        "the tensors in inputs= are others, or in another order",
    ),
    "another input": (
        lambda: _inputs([0]),
        lambda: _inputs([1]),
        "step 9: MulBackward0, whose forward takes a tensor on the way to inputs=, and did not before, or the other "
        "way round",
    ),
    "deeper": (
        lambda: _loss(leaf().sin()).backward(),
        lambda: _loss(leaf().sin().sin()).backward(),
        "step 10: SinBackward0 where AccumulateGrad was",
    ),
    "less deep": (
        lambda: _loss(leaf().sin().sin()).backward(),
        lambda: _loss(leaf().sin()).backward(),
        "step 10: AccumulateGrad where SinBackward0 was",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_why_a_plan_does_not_fit(change: str) -> None:
    before, after, reason = CHANGES[change]
    with backbind.capture() as session:
        before()
        before()
        after()
        after()
        before()
    stats = session.stats
    assert (stats.captures, stats.replays, stats.plans) == (2, 3, 2)
    assert stats.recapture_reasons == {reason: 1}


OTHER_KINDS: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "another loss": (
        lambda: leaf().sin().sum().backward(),
        lambda: leaf().sin().mean().backward(),
    ),
    "another model": (
        lambda: (leaf(2, 2) @ leaf(2, 2)).relu().sum().backward(),
        lambda: leaf(4).exp().sin().cos().sum().backward(),
    ),
    "another number of roots": (
        lambda: _roots(leaf().sum()),
        lambda: _roots(leaf().sum(), leaf().sum()),
    ),
    "another number of inputs": (lambda: _inputs([0]), lambda: _inputs([0, 1])),
    "inputs accumulated": (
        lambda: (lambda x: _grad(x.sin().sum(), x))(leaf()),
        lambda: (lambda x: x.sin().sum().backward(inputs=[x]))(leaf()),
    ),
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_another_kind_of_backward_is_captured_without_a_reason(kind: str) -> None:
    before, after = OTHER_KINDS[kind]
    with backbind.capture() as session:
        before()
        before()
        after()
        after()
        before()
    stats = session.stats
    assert (stats.captures, stats.replays, stats.plans) == (2, 3, 2)
    assert stats.recapture_reasons == {}


def test_reasons_are_bounded_and_the_frequent_ones_keep_their_counts() -> None:
    operations = [torch.sin, torch.cos, torch.tanh, torch.exp]

    def run(number: int) -> None:
        value = leaf()
        for i in range(5):
            value = operations[number >> 2 * i & 3](value)
        _loss(value).backward()

    def stack(count: int) -> None:
        _loss(torch.stack([leaf()] * count)).backward()

    with backbind.capture() as session:
        for number in range(4**5):
            run(number)
            if number % 100 == 0:
                stack(2 + number // 100)
    stats = session.stats
    assert stats.captures == 4**5 + 11
    recaptures = sum(stats.recapture_reasons.values())
    assert recaptures == 4**5 + 11 - 1
    assert len(stats.recapture_reasons) <= 65
    stacked = "step 9: StackBackward0, whose forward takes another number of tensors than before"
    assert stats.recapture_reasons[stacked] == 10


def test_names_of_opaque_steps_are_bounded() -> None:
    with backbind.capture() as session:
        for number in range(100):
            made = type(f"Made{number}", (_Identity,), {})
            apply(made, leaf()).sum().backward()
            backbind.reset()
    names = session.stats.opaque_steps
    assert sum(names.values()) == 100
    assert len(names) == 65
    assert names["others"] == 36


FORWARDS: dict[str, Callable[[int], torch.Tensor]] = {
    "linear": lambda n: torch.nn.Linear(4, 3)(torch.randn(n, 4)).sum(),
    "norm": lambda n: torch.nn.LayerNorm(4)(torch.randn(n, 4)).sum(),
    "convolution": lambda n: torch.nn.Conv2d(2, 3, 3)(torch.randn(n, 2, 5, 5)).relu().sum(),
    "attention": lambda n: torch.nn.MultiheadAttention(4, 2)(*[torch.randn(3, n, 4)] * 3)[0].sum(),
    "recurrent": lambda n: torch.nn.LSTM(4, 3)(torch.randn(2, n, 4))[0].sum(),
    "embedding": lambda n: torch.nn.Embedding(9, 2)(torch.arange(n) % 9).sum(),
    "broadcast": lambda n: (leaf(1, 4) * torch.randn(n, 4) + leaf(4)).std(),
    "indexed": lambda n: leaf(60, 2)[torch.arange(n)].prod(),
    "views": lambda n: (
        leaf(60, 2)[:n].t().clone(memory_format=torch.contiguous_format).view(-1).cumsum(0).max()
    ),
    "in place": lambda n: (leaf(60, 2) * 1).narrow(0, 0, n).mul_(leaf(2)).sum(),
    "loss": lambda n: torch.nn.functional.cross_entropy(leaf(60, 4)[:n], torch.arange(n) % 4),
    "cat": lambda n: torch.cat([leaf(n, 2), leaf(3, 2)]).norm(),
}


@pytest.mark.parametrize("forward", FORWARDS)
def test_fifty_batch_sizes_make_one_capture(forward: str) -> None:
    with backbind.capture() as session:
        for size in (*range(2, 52), 1):
            FORWARDS[forward](size).backward()
    stats = session.stats
    assert (stats.captures, stats.replays, stats.recapture_reasons) == (1, 50, {})


@pytest.mark.parametrize(
    "varied", ["scalar", "dtype", "dim", "hook", "layout", "needs", "retained", "created"]
)
def test_what_a_plan_does_not_depend_on(varied: str) -> None:
    with backbind.capture() as session:
        for step in range(6):
            x = leaf(3, 3)
            if varied == "dtype":
                x = torch.randn(
                    3, 3, dtype=[torch.float32, torch.float64, torch.complex64][step % 3], requires_grad=True
                )
            if varied == "hook" and step % 2:
                x.register_hook(lambda grad: grad * 2)
            loss = (x * float(step) if varied == "scalar" else x * 2.0).sum(
                dim=step % 2 if varied == "dim" else 0
            )
            given = torch.ones_like(loss)
            loss.backward(
                given, retain_graph=varied == "retained" and step % 2 == 0, create_graph=varied == "created"
            )
            x.grad = None
    assert (session.stats.captures, session.stats.replays) == (1, 5)


def test_alternating_graphs_make_one_capture_each() -> None:
    forwards = list(FORWARDS.values())
    with backbind.capture() as session:
        for step in range(10 * len(forwards)):
            forwards[step % len(forwards)](3 + step % 4).backward()
    assert (session.stats.captures, session.stats.replays) == (len(forwards), 9 * len(forwards))


@pytest.mark.parametrize("kind", ["depth", "same key"])
def test_the_store_is_bounded_and_the_plan_used_last_stays(kind: str) -> None:
    def run(number: int) -> None:
        value = leaf()
        for i in range(10):
            bit = number >> i & 1 if kind == "same key" else i % 2
            value = value.sin() if bit else value.cos()
        for _ in range(number if kind == "depth" else 0):
            value = value.exp()
        value.sum().backward()

    with backbind.capture() as session:
        for number in range(300):
            run(number)
            run(0)
    stats = session.stats
    assert stats.captures == 300
    assert 1 < stats.plans < 300
    with backbind.capture() as again:
        for number in (1, 299, 0):
            run(number)
    assert (again.stats.captures, again.stats.replays) == (1, 2)
