"""When a plan fits another graph and when it does not, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import backbind
import pytest
import torch


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (3,)), requires_grad=True)


def _grad(loss: torch.Tensor, *inputs: torch.Tensor) -> None:
    torch.autograd.grad(loss, inputs, allow_unused=True)


def _product(
    first: Callable[[torch.Tensor], torch.Tensor], late: bool, x: torch.Tensor, y: torch.Tensor
) -> None:
    if late:
        right = y.cos()
        left = first(x)
    else:
        left = first(x)
        right = y.cos()
    (left * right).sum().backward()


def _roots(*roots: torch.Tensor) -> None:
    torch.autograd.backward(roots)


def _same(x: torch.Tensor) -> torch.Tensor:
    hidden = x.sin()
    return (hidden * hidden).sum()


def _unbound(rows: int) -> None:
    parts = leaf(rows, 3).unbind(0)
    (parts[0] * parts[1]).sum().backward()


def _inputs(order: Sequence[int], used: Sequence[int] = (0, 1)) -> None:
    leaves = [leaf(), leaf(), leaf()]
    loss = (leaves[used[0]].sin() * leaves[used[1]].cos()).sum()
    _grad(loss, *(leaves[i] for i in order))


CHANGES: dict[str, tuple[Callable[[], object], Callable[[], object], str]] = {
    "other node": (
        lambda: leaf().sin().sum().backward(),
        lambda: leaf().cos().sum().backward(),
        "step 1: CosBackward0 where the plan has SinBackward0",
    ),
    "other edge": (
        lambda: _same(leaf()).backward(),
        lambda: (leaf().sin() * leaf().sin()).sum().backward(),
        "step 1: MulBackward0 leads elsewhere",
    ),
    "an input that needs no gradient": (
        lambda: (leaf() * leaf()).sum().backward(),
        lambda: (leaf() * leaf().detach()).sum().backward(),
        "step 1: MulBackward0 leads elsewhere",
    ),
    "another number of edges": (
        lambda: torch.stack([leaf(), leaf()]).sum().backward(),
        lambda: torch.stack([leaf(), leaf(), leaf()]).sum().backward(),
        "step 1: StackBackward0 has another number of edges",
    ),
    "another number of outputs": (
        lambda: _unbound(2),
        lambda: _unbound(3),
        "step 2: UnbindBackward0 takes another number of gradients",
    ),
    "other order": (
        lambda: _product(torch.sin, False, leaf(), leaf()),
        lambda: _product(torch.sin, True, leaf(), leaf()),
        "step 4: SinBackward0 was made in another order",
    ),
    "one leaf where there were two": (
        lambda: (leaf().sin() * leaf().sin()).sum().backward(),
        lambda: (lambda x: (x.sin() * x.sin()).sum().backward())(leaf()),
        "step 5: AccumulateGrad is reached by other ways",
    ),
    "two leaves where there was one": (
        lambda: (lambda x: (x.sin() * x.sin()).sum().backward())(leaf()),
        lambda: (leaf().sin() * leaf().sin()).sum().backward(),
        "step 3: SinBackward0 leads elsewhere",
    ),
    "other roots": (
        lambda: (lambda loss: _roots(loss, loss))(leaf().sum()),
        lambda: _roots(leaf().sum(), leaf().sum()),
        "other roots",
    ),
    "inputs in other order": (lambda: _inputs([0, 1]), lambda: _inputs([1, 0]), "other inputs"),
    "another input": (lambda: _inputs([0]), lambda: _inputs([1]), "step 1: MulBackward0 leads elsewhere"),
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


FURTHER_CHANGES: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "deeper": (
        lambda: leaf().sin().sum().backward(),
        lambda: leaf().sin().sin().sum().backward(),
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
"""Changes after which the plan is not even looked at, because it lies under another key."""


@pytest.mark.parametrize("change", FURTHER_CHANGES)
def test_a_capture_after_any_change_says_why(change: str) -> None:
    before, after = FURTHER_CHANGES[change]
    with backbind.capture() as session:
        before()
        before()
        after()
        after()
        before()
    stats = session.stats
    assert (stats.captures, stats.replays, stats.plans) == (2, 3, 2)
    assert list(stats.recapture_reasons.values()) == [1]


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
