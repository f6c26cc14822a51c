"""Backwards whose graphs are compiled: by torch.compile's backends, by a function, by an installed package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from typing import Any

import backbind
import pytest
import torch
from backbind.graph import backends
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.graph.gradients import differences

Step = Callable[[int], Tensor]
"""One forward; the number of the step decides about sizes and values."""


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Cube(torch.autograd.Function):
    """A function of Python."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        ctx.save_for_backward(value)
        result: Tensor = value**3
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (value,) = ctx.saved_tensors
        result: Tensor = gradients[0] * 3 * value**2
        return result


class Program(nn.Module):
    """A few layers and what a test does to them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.last = nn.Linear(8, 3)

    def hidden(self, value: Tensor) -> Tensor:
        result: Tensor = self.norm(nn.functional.gelu(self.first(value)))
        return result

    def reduced(self, hidden: Tensor) -> Tensor:
        result: Tensor = self.last(hidden)
        return result.square().sum()

    def loss(self, step: int) -> Tensor:
        torch.manual_seed(step)
        return self.reduced(self.hidden(torch.randn(5, 4)))


class DynamicBatch(Program):
    def loss(self, step: int) -> Tensor:
        torch.manual_seed(step)
        return self.reduced(self.hidden(torch.randn(step % 4, 4)))


class ChangingNumber(Program):
    def loss(self, step: int) -> Tensor:
        result: Tensor = super().loss(step) * (step + 0.5)
        return result


class ChangingExponent(Program):
    def loss(self, step: int) -> Tensor:
        result: Tensor = (super().loss(step) / 100 + 1) ** (step + 2)
        return result


class Hooks(Program):
    """Tensor hooks, hooks of nodes, hooks behind an accumulation, a gradient that is retained."""

    def loss(self, step: int) -> Tensor:
        torch.manual_seed(step)
        hidden = self.hidden(torch.randn(5, 4))
        hidden.register_hook(lambda gradient: gradient * 2)
        hidden.retain_grad()
        assert hidden.grad_fn is not None
        hidden.grad_fn.register_prehook(lambda gradients: tuple(one + 1 for one in gradients))
        hidden.grad_fn.register_hook(
            lambda results, _: tuple(None if one is None else one / 3 for one in results)
        )
        return self.reduced(hidden)


class HooksOfLeaves(Program):
    def __init__(self) -> None:
        super().__init__()
        self.first.weight.register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))

        def halve(parameter: Tensor) -> None:
            assert parameter.grad is not None
            parameter.grad.mul_(0.5)

        self.last.weight.register_post_accumulate_grad_hook(halve)


class Functions(Program):
    def hidden(self, value: Tensor) -> Tensor:
        result: Tensor = Cube.apply(super().hidden(value))  # type: ignore[no-untyped-call]
        return result


class ChangesOfViews(Program):
    def hidden(self, value: Tensor) -> Tensor:
        result = super().hidden(value) * 1.0
        result[:, 0] = result[:, 1] * 2
        return result


class Checkpoints(Program):
    use_reentrant = False

    def hidden(self, value: Tensor) -> Tensor:
        result = checkpoint(super().hidden, value.requires_grad_(), use_reentrant=self.use_reentrant)
        assert isinstance(result, Tensor)
        return result


class ReentrantCheckpoints(Checkpoints):
    use_reentrant = True


class SharedGradients(Program):
    """One gradient goes to two leaves, which must not share its memory."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))

    def loss(self, step: int) -> Tensor:
        return super().loss(step) + (self.left + self.right).sum()


PROGRAMS = [
    Program,
    DynamicBatch,
    ChangingNumber,
    ChangingExponent,
    Hooks,
    HooksOfLeaves,
    Functions,
    ChangesOfViews,
    Checkpoints,
    ReentrantCheckpoints,
    SharedGradients,
]


def gradients_of_steps(make: type[Program], count: int, **capture: Any) -> list[Tensor | None]:
    """The gradients after each step; every second one adds to what is there."""
    program = make()
    found: list[Tensor | None] = []
    for step in range(count):
        if step % 2 == 0:
            program.zero_grad()
        loss = program.loss(step)
        if capture:
            with backbind.capture(**capture):
                loss.backward()
        else:
            loss.backward()
        found += [None if one.grad is None else one.grad.clone() for one in program.parameters()]
    return found


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_gradients_keep_their_bits_under_aot_eager(make: type[Program]) -> None:
    expected = gradients_of_steps(make, 6)
    assert differences(gradients_of_steps(make, 6, backend="aot_eager"), expected) == {}


@pytest.mark.slow
@pytest.mark.parametrize("make", [Program, Hooks, DynamicBatch], ids=lambda make: make.__name__)
def test_gradients_are_close_under_inductor(make: type[Program]) -> None:
    expected = gradients_of_steps(make, 4)
    for left, right in zip(gradients_of_steps(make, 4, backend="inductor"), expected, strict=True):
        torch.testing.assert_close(left, right)


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_a_function_gets_the_graph_and_is_called_with_five_lists(dynamic: bool | None) -> None:
    calls: list[tuple[int, ...]] = []

    def compiler(graph: torch.fx.GraphModule) -> Callable[..., Any]:
        names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
        assert names == ["inputs", "sizes", "scalars", "hooks", "packed_data"]

        def run(*lists: list[Any]) -> Any:
            calls.append(tuple(map(len, lists)))
            return graph(*lists)

        return run

    expected = gradients_of_steps(DynamicBatch, 6)
    actual = gradients_of_steps(DynamicBatch, 6, backend=compiler, dynamic=dynamic)
    assert differences(actual, expected) == {}
    assert len(calls) == 6
    has_sizes = [sizes > 0 for _, sizes, *_ in calls]
    assert has_sizes == {None: [False] + 5 * [True], True: 6 * [True], False: 6 * [False]}[dynamic]


def test_a_compiler_for_stock_compiled_autograd_works_unchanged() -> None:
    compiler = torch.compile(backend="eager", fullgraph=True)
    expected = gradients_of_steps(HooksOfLeaves, 3)
    assert differences(gradients_of_steps(HooksOfLeaves, 3, backend=compiler), expected) == {}


def test_an_error_of_the_compiler_leaves_the_graph_usable() -> None:
    def compiler(graph: torch.fx.GraphModule) -> Callable[..., Any]:
        raise NotImplementedError(f"{len(graph.graph.nodes) > 0}")

    value = torch.ones(3, requires_grad=True)
    loss = value.exp().sum()
    with backbind.capture(backend=compiler), pytest.raises(NotImplementedError, match="True"):
        loss.backward()
    loss.backward()
    assert value.grad is not None
    assert torch.equal(value.grad, value.detach().exp())


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (None, "what a compiled backward returns must be a list or tuple of tensors and None, got NoneType"),
        ([1], "what a compiled backward returns must be tensors or None, element 0 is a int"),
        ([], "a compiled backward must return 1 gradients, got 0"),
    ],
)
def test_what_a_compiled_graph_returns_is_checked(returned: object, text: str) -> None:
    value = torch.ones(3, requires_grad=True)
    loss = value.exp().sum()
    with backbind.capture(backend=lambda _: lambda *_: returned), pytest.raises(TypeError) as raised:
        torch.autograd.grad(loss, [value], retain_graph=True)
    assert str(raised.value) == text


def test_gradients_that_are_to_be_differentiated_run_natively() -> None:
    value = torch.ones(3, requires_grad=True)
    with backbind.capture(backend="aot_eager") as session:
        (first,) = torch.autograd.grad(value.pow(3).sum(), [value], create_graph=True)
        first.sum().backward()
    assert value.grad is not None
    assert value.grad.tolist() == [6.0, 6.0, 6.0]
    assert session.stats.native_reasons == {
        "the graph of the gradients is wanted (create_graph), which a compiled one would not give": 1
    }


# ----------------------------------------------------------------------------------------------------------- by name


def test_backends_are_listed() -> None:
    names = backbind.backends()
    assert names[:2] == ["native", "graph"]
    assert {"inductor", "aot_eager", "eager"} <= set(names)
    assert len(names) == len(set(names))


def test_an_installed_package_brings_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mirror", f"{__name__}:compile_by_mirror", backends.GROUP)
    monkeypatch.setattr(backends, "entry_points", lambda group: [point] if group == backends.GROUP else [])
    assert backbind.backends()[:3] == ["native", "graph", "mirror"]
    expected = gradients_of_steps(Program, 2)
    assert differences(gradients_of_steps(Program, 2, backend="mirror"), expected) == {}
    assert mirrored


mirrored: list[torch.fx.GraphModule] = []


def compile_by_mirror(graph: torch.fx.GraphModule) -> Callable[..., Any]:
    mirrored.append(graph)
    return graph


@pytest.mark.parametrize(
    ("backend", "option", "text"),
    [
        (
            "native",
            {"dynamic": True},
            "backend 'native' has no use for dynamic=True: only torch.compile's backends do",
        ),
        (
            "graph",
            {"fullgraph": True},
            "backend 'graph' has no use for fullgraph=True: only torch.compile's backends do",
        ),
        (
            "graph",
            {"options": {"a": 1}},
            "backend 'graph' has no use for options={'a': 1}: only torch.compile's backends do",
        ),
    ],
)
def test_options_without_a_use_are_refused(backend: str, option: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as raised:
        backbind.capture(backend=backend, **option)
    assert str(raised.value) == text


def test_what_is_no_backend_is_refused() -> None:
    with pytest.raises(TypeError) as raised:
        backbind.capture(backend=3)  # type: ignore[call-overload]
    assert str(raised.value) == "a backend is a name or a function that compiles a graph, got int"
