"""What is particular to captured graphs: when one is made, what it is called with, how it is left, what it holds.

That programs look the same under the backend ``graph`` is tested where programs are: tests/cases and tests/replay.
"""

from __future__ import annotations

import gc
import linecache
import operator
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import backbind
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from backbind.graph import backends
from backbind.graph.captured_graph import PLACEHOLDERS
from backbind.graph.runner import Runner, make_runner
from torch import Tensor, fx, nn
from torch.autograd.graph import get_gradient_edge
from torch.utils.checkpoint import checkpoint

from tests.clean_process import clean_process as clean_process
from tests.oracle.compare import tensor_difference
from tests.replay.differential import Expected, Run, apply, assert_same_as_eager


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[fx.Graph]:
    """Every graph that the backend ``graph`` makes something callable of."""
    graphs: list[fx.Graph] = []

    def noting(graph: fx.Graph) -> Runner:
        graphs.append(graph)
        return make_runner(graph)

    monkeypatch.setattr(backends, "make_runner", noting)
    monkeypatch.setattr(backends, "_backends", OrderedDict())
    return graphs


def gradients_of(loss: Tensor, leaves: Sequence[Tensor]) -> list[Tensor | None]:
    for leaf in leaves:
        leaf.grad = None
    loss.backward()
    return [None if leaf.grad is None else leaf.grad.clone() for leaf in leaves]


def assert_same_bits(
    expected: Sequence[Tensor | None], actual: Sequence[Tensor | None], where: object
) -> None:
    for left, right in zip(expected, actual, strict=True):
        assert (left is None) == (right is None), where
        if left is not None and right is not None:
            assert not tensor_difference(left, right), where
            assert left.stride() == right.stride(), where


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


# Sizes and numbers

PROGRAMS_OF_A_BATCH: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "linear": lambda x, w, b: F.linear(x, w, b).relu(),
    "broadcast": lambda x, w, b: (x.exp() + b) * b,
    "softmax": lambda x, w, b: (x @ w).softmax(1) * x,
    "normalized": lambda x, w, b: F.layer_norm(x @ w, (4,), b, b),
    "reshaped": lambda x, w, b: x.reshape(-1, 2, 2).transpose(1, 2).reshape(-1, 4) * b,
    "joined": lambda x, w, b: torch.cat([x, x @ w, b.expand(3, 4)]),
    "mean": lambda x, w, b: (x * w.sum(0)).mean(1),
    "narrowed": lambda x, w, b: x[: x.shape[0] // 2] * w[0],
}


@pytest.mark.parametrize("program", PROGRAMS_OF_A_BATCH)
def test_sizes_that_change(program: str, compiled: list[fx.Graph]) -> None:
    """For each structure two graphs at most: one of the first size, one in which what changed is not baked in."""
    w, b = leaf(4, 4), leaf(4)
    for size in (2, 7, 0, 1, 5, 2, 1, 0, 7, 31):
        x = leaf(size, 4)

        def loss(x: Tensor = x) -> Tensor:
            return PROGRAMS_OF_A_BATCH[program](x, w, b).sum()

        expected = gradients_of(loss(), (x, w, b))
        with backbind.capture(backend="graph"):
            actual = gradients_of(loss(), (x, w, b))
        assert_same_bits(expected, actual, size)
    assert len(compiled) <= 2 * backbind.stats().captures <= 4


@pytest.mark.parametrize("first", [0, 1, 2])
def test_two_sizes_that_change_one_after_the_other(first: int, compiled: list[fx.Graph]) -> None:
    w = leaf(4, 4)
    for rows, columns in ((first, 3), (5, 3), (5, 6), (7, 2), (1, 1), (0, 4), (3, 0)):
        x = leaf(columns, rows, 4)
        expected = gradients_of((x @ w).tanh().sum(), (x, w))
        with backbind.capture(backend="graph"):
            actual = gradients_of((x @ w).tanh().sum(), (x, w))
        assert_same_bits(expected, actual, (rows, columns))
    assert len(compiled) <= 3


NUMBERS: dict[str, Sequence[float]] = {
    "ints": range(-3, 20),
    "floats": [0.5, -0.0, 0.0, 1e-300, float("inf"), float("nan"), -1.5, 2.0, 3.25],
    "large ints": [2**53 + 1, -(2**62), 3, 5],
}


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize(
    "program",
    [
        lambda x, k: x * k,
        lambda x, k: torch.add(x.exp(), x, alpha=k),
        lambda x, k: (x * x) / k,
        lambda x, k: F.softplus(x, beta=k),
    ],
    ids=["product", "alpha", "quotient", "beta"],
)
def test_numbers_that_change(
    program: Callable[[Tensor, Any], Tensor], kind: str, compiled: list[fx.Graph]
) -> None:
    x = leaf(3, dtype=torch.float64)
    for number in NUMBERS[kind]:
        if number == 0 and isinstance(number, int):
            continue  # an int by which nothing can be divided
        expected = gradients_of(program(x, number).sum(), (x,))
        with backbind.capture(backend="graph"):
            actual = gradients_of(program(x, number).sum(), (x,))
        assert_same_bits(expected, actual, number)
    assert len(compiled) <= 2


# Hooks


def test_hooks_that_come_and_go(compiled: list[fx.Graph]) -> None:
    """A graph for each set of hooks, whichever functions they are."""
    w = leaf(3)

    def gradients(step: int) -> list[Tensor | None]:
        hidden = (w * 2).sin()
        if step % 3 == 0:
            hidden.register_hook(lambda grad: grad * (step + 3))
        handle = w.register_hook(lambda grad: grad + step) if step % 2 else None
        result = gradients_of(hidden.sum(), (w,))
        if handle is not None:
            handle.remove()
        return result

    for step in range(12):
        expected = gradients(step)
        with backbind.capture(backend="graph"):
            actual = gradients(step)
        assert_same_bits(expected, actual, step)
    assert len(compiled) <= 4


class World:
    """A chain with a place for a hook in the middle, and tensors before and behind it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.leaf, self.other = leaf(3), leaf(3)
        self.early = self.leaf * self.other
        self.middle = self.early.sin()
        self.late = self.middle * self.other
        self.loss = (self.late.exp() * 2).sum()

    def look(self, name: str) -> Callable[[Tensor], None]:
        return lambda grad: self.run.note(name, grad)


def _hook_on(name: str) -> Callable[[World], object]:
    def change(world: World) -> object:
        return getattr(world, name).register_hook(lambda grad: grad * 2)

    return change


def _node_hook_on(name: str, kind: str) -> Callable[[World], object]:
    def change(world: World) -> object:
        node = get_gradient_edge(getattr(world, name)).node
        if kind == "before":
            return node.register_prehook(lambda grads: (grads[0] * 2,))
        return node.register_hook(lambda results, grads: world.run.note("behind", *results, *grads))

    return change


def _without_grad(change: Callable[[], object]) -> None:
    with torch.no_grad():
        change()


CHANGES: dict[str, Callable[[World], object]] = {
    "nothing": lambda world: None,
    "hook on what comes": _hook_on("early"),
    "hook on a leaf": _hook_on("leaf"),
    "hook on what has been": _hook_on("late"),
    "hook on the same": _hook_on("middle"),
    "hook before a node": _node_hook_on("early", "before"),
    "hook behind a node": _node_hook_on("early", "behind"),
    "hook behind the same node": _node_hook_on("middle", "behind"),
    "retained gradient": lambda world: world.early.retain_grad(),
    "hook behind a leaf": lambda world: world.other.register_post_accumulate_grad_hook(
        lambda other: world.run.note("accumulated", other.grad)
    ),
    "saved tensor in place": lambda world: _without_grad(lambda: world.other.mul_(2)),
    "saved tensor unseen": lambda world: world.other.data.mul_(2),
    "leaf that wants no gradient": lambda world: world.leaf.requires_grad_(False),
    "gradient of a leaf": lambda world: setattr(world.other, "grad", torch.ones(3)),
    "error": lambda world: 1 / 0,
}


def _place_hook(world: World, kind: str, hook: Callable[[], object]) -> Any:
    node = get_gradient_edge(world.middle).node
    if kind == "tensor":
        return world.middle.register_hook(lambda grad: hook() and None)
    if kind == "before node":
        return node.register_prehook(lambda grads: hook() and None)
    return node.register_hook(lambda results, grads: hook() and None)


@pytest.mark.parametrize("kind", ["tensor", "before node", "behind node"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_hook_that_changes_what_lies_ahead(change: str, kind: str) -> None:
    """Then the graph is left, and the rest runs natively; the backward after that is one of another structure."""

    def scenario(run: Run) -> object:
        world = World(run)
        handles: list[Any] = []

        def hook() -> None:
            run.note("middle")
            handles.append(CHANGES[change](world))

        _place_hook(world, kind, hook)
        world.early.register_hook(world.look("early"))
        world.leaf.register_hook(world.look("leaf"))
        outcome = run.attempt(lambda: world.loss.backward(retain_graph=True))
        again = run.attempt(world.loss.backward)
        return outcome, again, world.leaf.grad, world.other.grad, world.leaf._version

    assert_same_as_eager(scenario, Expected(captures=None))


@pytest.mark.parametrize("kind", ["tensor", "before node", "behind node"])
def test_a_hook_that_removes_itself(kind: str) -> None:
    def scenario(run: Run) -> object:
        world = World(run)
        handles: list[Any] = []

        def called() -> None:
            run.note("called")
            handles[0].remove()

        handles.append(_place_hook(world, kind, called))
        with run.backward():
            world.loss.backward(retain_graph=True)
            world.loss.backward()
        return world.leaf.grad, world.other.grad

    assert_same_as_eager(scenario, Expected(captures=None))


# What is asked for


def _ask_twice(run: Run, world: World, keywords: dict[str, Any]) -> object:
    first = run.attempt(lambda: world.loss.backward(**keywords))
    return first, run.attempt(lambda: world.loss.backward(**keywords))


def _ask_for_gradients(run: Run, world: World, keywords: dict[str, Any]) -> object:
    with run.backward():
        return torch.autograd.grad(world.loss, [world.middle, world.other], **keywords)


def _ask_for_second_order(run: Run, world: World, keywords: dict[str, Any]) -> object:
    with run.backward():
        first = torch.autograd.grad(world.loss, [world.leaf, world.other], create_graph=True)
        return first, torch.autograd.grad(
            first[0].sum() + (first[1] * first[1]).sum(), [world.leaf], **keywords
        )


def _ask_of_several(run: Run, world: World, keywords: dict[str, Any]) -> object:
    with run.backward():
        roots, weights = [world.late, world.loss, world.late], [torch.ones(3), None, torch.full((3,), 0.5)]
        return run.attempt(lambda: torch.autograd.backward(roots, weights, **keywords))


ASKS: dict[str, tuple[Callable[[Run, World, dict[str, Any]], object], dict[str, Any]]] = {
    "backward": (_ask_twice, {}),
    "retain_graph": (_ask_twice, {"retain_graph": True}),
    "create_graph": (_ask_twice, {"create_graph": True}),
    "one gradient given": (_ask_twice, {"gradient": torch.tensor(-0.5), "retain_graph": True}),
    "into a value": (_ask_for_gradients, {}),
    "retained": (_ask_for_gradients, {"retain_graph": True}),
    "second order": (_ask_for_second_order, {}),
    "third order": (_ask_for_second_order, {"create_graph": True}),
    "several roots": (_ask_of_several, {}),
}


@pytest.mark.parametrize("ask", ASKS)
def test_what_is_asked_for(ask: str) -> None:
    def scenario(run: Run) -> object:
        world = World(run)
        asked, keywords = ASKS[ask]
        return asked(run, world, keywords), world.leaf.grad, world.other.grad

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("which", [("leaf",), ("other",), ("early", "leaf"), ("leaf", "leaf"), ("loss",)])
def test_inputs(which: tuple[str, ...]) -> None:
    def scenario(run: Run) -> object:
        world = World(run)
        inputs = [getattr(world, name) for name in which]
        for tensor in inputs:
            tensor.retain_grad()
        outcome = run.attempt(lambda: world.loss.backward(inputs=inputs))
        return outcome, [tensor.grad for tensor in inputs], world.leaf.grad, world.other.grad

    assert_same_as_eager(scenario)


# Gradients that are none, or no dense ones


class Sometimes(torch.autograd.Function):
    """Gives a gradient to one of two inputs, to both or to none."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, gives: tuple[bool, bool]) -> Tensor:
        ctx.gives = gives
        return x + y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        return grad * 2 if ctx.gives[0] else None, grad * 3 if ctx.gives[1] else None, None


@pytest.mark.parametrize("gives", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("is_hooked", [False, True])
def test_undefined_gradients(gives: tuple[bool, bool], is_hooked: bool) -> None:
    def scenario(run: Run) -> object:
        x, y = leaf(3), leaf(3)
        hidden = x.sin()
        if is_hooked:
            hidden.register_hook(lambda grad: run.note("hidden", grad))
            y.register_hook(lambda grad: run.note("y", grad))
            x.register_post_accumulate_grad_hook(lambda x: run.note("x", x.grad))
        loss = (apply(Sometimes, hidden * y, y, gives) * x.detach()).sum()
        with run.backward():
            loss.backward()
        return x.grad, y.grad

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("also", ["nothing", "another sparse", "dense first", "dense last"])
def test_sparse_gradients(also: str) -> None:
    def scenario(run: Run) -> object:
        w = leaf(6, 3)
        places = torch.tensor([1, 4, 1])
        loss = w.sum() if also == "dense first" else torch.zeros(())
        loss = loss + F.embedding(places, w, sparse=True).sin().sum()
        if also == "another sparse":
            loss = loss + F.embedding(places + 1, w, sparse=True).sum()
        if also == "dense last":
            loss = loss + (w * w).sum()
        with run.backward():
            loss.backward(retain_graph=True)
            loss.backward()
        return w.grad

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors(layout: torch.layout) -> None:
    def scenario(run: Run) -> object:
        x, y = leaf(2, 3), leaf(4, 3)
        nested = torch.nested.as_nested_tensor([x, y], layout=layout)
        loss = (nested * nested).values().sum() if layout is torch.jagged else _sum_of(nested)
        with run.backward():
            loss.backward()
        return x.grad, y.grad

    def _sum_of(nested: Tensor) -> Tensor:
        padded: Tensor = torch.nested.to_padded_tensor(nested * nested, 0.0)
        return padded.sum()

    assert_same_as_eager(scenario, Expected(captures=None))


# Errors


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, switch: list[bool]) -> Tensor:
        ctx.switch = switch
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        if ctx.switch[0]:
            raise LookupError("switched off")
        return grad * 2, None


@pytest.mark.parametrize("retain_graph", [False, True])
@pytest.mark.parametrize("where", ["function", "hook", "leaf hook", "unpack hook"])
def test_an_error_in_the_middle_and_then_again(where: str, retain_graph: bool) -> None:
    """Behind an error the graph is as eager leaves it: what has run is gone, what has not is there."""

    def scenario(run: Run) -> object:
        w, switch = leaf(3), [True]

        def fail(*_: object) -> None:
            if switch[0]:
                raise LookupError("switched off")

        def unpack(tensor: Tensor) -> Tensor:
            fail()
            return tensor

        before = w.exp()
        if where == "function":
            middle = apply(Failing, before, switch)
        elif where == "unpack hook":
            with torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
                middle = before.sin()
        else:
            middle = before.sin()
            (w if where == "leaf hook" else middle).register_hook(fail)
        behind = middle.cos()
        outcomes = [run.attempt(lambda: behind.sum().backward(retain_graph=retain_graph))]
        nodes = (behind.grad_fn, before.grad_fn)
        saved = [run.attempt(partial(_saved, node)) for node in nodes if node is not None]
        switch[0] = False
        outcomes += [run.attempt(lambda: behind.sum().backward(retain_graph=retain_graph)) for _ in range(2)]
        return outcomes, saved, w.grad

    def _saved(node: Any) -> Tensor:
        saved: Tensor = node._saved_self if hasattr(node, "_saved_self") else node._saved_result
        return saved

    assert_same_as_eager(scenario)


# Memory


def test_what_is_freed_when() -> None:
    """What a step saved goes with the step, its gradients with the last that needs them, as a hook can tell."""

    def scenario(run: Run) -> object:
        w = leaf(4, 4)
        saved: list[weakref.ref[Tensor]] = []
        gradients: list[weakref.ref[Tensor]] = []

        def pack(tensor: Tensor) -> Tensor:
            copy = tensor.detach().clone()
            saved.append(weakref.ref(copy))
            return copy

        def look(grad: Tensor) -> None:
            run.note([one() is None for one in saved], [one() is None for one in gradients])
            gradients.append(weakref.ref(grad))

        hidden = w
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            for _ in range(4):
                hidden = (hidden @ w).tanh()
                hidden.register_hook(look)
        w.register_hook(look)
        loss = (hidden * 2).sum()
        del hidden
        with run.backward():
            loss.backward()
        run.note([one() is None for one in saved], [one() is None for one in gradients])
        return w.grad

    assert_same_as_eager(scenario)


def test_tensors_of_a_backward_are_freed_with_their_graph() -> None:
    gc.disable()
    try:
        w = leaf(4)
        held: list[weakref.ref[Tensor]] = []
        for _ in range(3):
            hidden = w.exp()
            held.append(weakref.ref(hidden))
            with backbind.capture(backend="graph"):
                (hidden * hidden).sum().backward()
            del hidden
            assert [one() for one in held] == [None] * len(held)
    finally:
        gc.enable()


def test_functions_of_graphs_are_freed() -> None:
    """With their last owner, and their source too."""

    def sources() -> set[str]:
        return {file for file in linecache.cache if file.startswith("<backbind graph")}

    before = sources()
    graph = fx.Graph()
    for name in PLACEHOLDERS:
        graph.placeholder(name)
    graph.output(())
    runner = make_runner(graph)
    assert len(sources() - before) == 1
    reference = weakref.ref(runner)
    del runner
    assert reference() is None
    assert sources() == before


def test_names_of_nodes_are_no_names_of_the_code() -> None:
    """Nodes of C++ may be called anything."""
    graph = fx.Graph()
    inputs, *_ = [graph.placeholder(name) for name in PLACEHOLDERS]
    names = ("moved", "returned", "release", "add_to_buffer_0", "constant_0", "run")
    given = [
        graph.create_node("call_function", operator.getitem, (inputs, place), name=name)
        for place, name in enumerate(names)
    ]
    total = given[0]
    for one in given[1:]:
        total = graph.call_function(torch.ops.backbind.sum_gradients.default, (total, one))
    graph.output((total, *given))
    tensors = [torch.full((2,), float(number)) for number in range(len(names))]
    total_of_all, *same = make_runner(graph)(list(tensors), [], [], [SimpleNamespace(release_step=print)], [])
    assert total_of_all is not None
    assert total_of_all.tolist() == [15.0, 15.0]
    assert all(left is right for left, right in zip(same, tensors, strict=True))


def test_a_gradient_leaves_its_list_before_it_is_added_to() -> None:
    """The second of three results is added to the first in place, as nobody else holds it."""

    def scenario(run: Run) -> object:
        x, w = leaf(3), leaf(3)
        with run.backward():
            return torch.autograd.grad(torch.lerp(x, x, w).sum(), [x, w])

    assert_same_as_eager(scenario)


# Threads


def test_threads_that_share_a_graph(compiled: list[fx.Graph]) -> None:
    def train(number: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(number)
        w = torch.randn(5, 5, generator=generator).requires_grad_()
        seen: list[Tensor] = []
        w.register_hook(lambda grad: seen.append(grad.clone()))
        for _ in range(20):
            ((w @ w).tanh().sin() * w).sum().backward()
        assert w.grad is not None
        return [*seen, w.grad]

    expected = [train(number) for number in range(4)]
    session = backbind.enable(backend="graph")
    try:
        train(0)
        actual: dict[int, list[Tensor]] = {}
        threads = [
            threading.Thread(target=lambda number=number: actual.update({number: train(number)}))
            for number in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        backbind.disable()
    for number in range(4):
        assert_same_bits(expected[number], actual[number], number)
    assert len(compiled) == 1
    assert session.stats.fallbacks == 0


# Training


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.body(x)
        return result


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 2, 3)
        )

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.body(x.unsqueeze(1))
        return result


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.LSTM(16, 12, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.body(x)[0]
        return result


class Checkpointed(nn.Module):
    def __init__(self, use_reentrant: bool) -> None:
        super().__init__()
        self.use_reentrant = use_reentrant
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.2), nn.GELU()) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x.requires_grad_() if self.use_reentrant else x
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=self.use_reentrant)
        return x


MODELS: dict[str, Callable[[], nn.Module]] = {
    "transformer": Encoder,
    "convolutions": Convolutions,
    "lstm": Recurrent,
    "checkpoints": lambda: Checkpointed(use_reentrant=False),
    "reentrant checkpoints": lambda: Checkpointed(use_reentrant=True),
}


def trained(model: str, dtype: torch.dtype) -> list[Tensor]:
    torch.manual_seed(0)
    module = MODELS[model]().to(dtype)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    losses = []
    for step in range(20):
        x = torch.randn(2 + step % 3, 8, 16, dtype=dtype)
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        loss = (module(x) ** 2).mean() * (step + 1)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *(parameter.detach() for parameter in module.parameters())]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("model", MODELS)
def test_training(model: str, dtype: torch.dtype, compiled: list[fx.Graph]) -> None:
    expected = trained(model, dtype)
    with backbind.capture(backend="graph") as session:
        actual = trained(model, dtype)
    assert_same_bits(expected, actual, model)
    assert session.stats.fallbacks == 0
    assert len(compiled) <= 6
