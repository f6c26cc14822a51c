"""Backwards that C++ code asks for (libtorch), with functions and hooks written in C++: as in eager, and captured."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import backbind
import pytest
import torch

from tests.compiled import compile_library, folder_of_run
from tests.replay.differential import Expected, Run, apply, assert_same_as_eager

pytestmark = pytest.mark.slow  # compiling the library takes its time

SOURCES = Path(__file__).with_name("from_cpp")


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> None:
    sources = sorted(SOURCES.glob("*.cpp"))
    compile_library("backbind_from_cpp", sources, folder_of_run(tmp_path_factory) / "from_cpp")


def cpp() -> Any:
    """What the library defines."""
    return torch.ops.backbind_from_cpp


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (4,)), requires_grad=True)


def seen() -> object:
    """What C++ hooks and functions noted since they were asked last."""
    return cpp().take_names(), cpp().take_tensors()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 2


UNSET, NO, YES = -1, 0, 1
"""How retain_graph is given to C++."""

FORWARDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "built-in": lambda x: (x.sin() * x).exp(),
    "function": lambda x: cpp().cube(x.sin()) * x,
    "function first of two": lambda x: cpp().split(x * 1, True)[0],
    "function second of two": lambda x: cpp().split(x * 1, False)[1],
    "function both of two": lambda x: cpp().split(x * 1, False)[0] * cpp().split(x * 2, True)[1],
    "function in place": lambda x: cpp().doubled(x.sin()) * x,
    "function with places": lambda x: cpp().sorted(x.sin()),
    "function with a backward inside": lambda x: cpp().inner(x.sin()),
    "functions of both languages": lambda x: cpp().cube(apply(Doubled, cpp().cube(x))),
}


@pytest.mark.parametrize("forward", FORWARDS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_member_backward(forward: str, create_graph: bool) -> None:
    def scenario(run: Run) -> object:
        x = leaf()
        value = FORWARDS[forward](x)
        gradient = torch.arange(4.0)
        with run.backward():
            cpp().member_backward(value, gradient, UNSET, create_graph)
        assert x.grad is not None
        first = x.grad.detach().clone(), x.grad.requires_grad
        again = None
        if create_graph:
            loss, x.grad = x.grad.square().sum(), None
            again = run.attempt(lambda: cpp().member_backward(loss, None, UNSET, False))
        return first, again, x.grad, seen()

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("forward", FORWARDS)
@pytest.mark.parametrize("retain_graph", [UNSET, NO, YES])
def test_the_same_graph_twice(forward: str, retain_graph: int) -> None:
    def scenario(run: Run) -> object:
        x = leaf()
        value = FORWARDS[forward](x).sum()
        one = run.attempt(lambda: cpp().member_backward(value, None, retain_graph, False))
        other = run.attempt(lambda: cpp().member_backward(value, None, NO, False))
        return one, other, x.grad, seen()

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("forward", FORWARDS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_grad(forward: str, create_graph: bool) -> None:
    def scenario(run: Run) -> object:
        x, unused = leaf(), leaf()
        middle = x.tanh()
        value = FORWARDS[forward](middle)
        ones = torch.ones(4)
        given = run.attempt(lambda: cpp().grad([value], [x, middle], [ones], YES, create_graph, False))
        refused = run.attempt(lambda: cpp().grad([value], [x, unused], [ones], YES, False, False))
        allowed = run.attempt(lambda: cpp().grad([value], [x, unused], [ones], YES, False, True)[0])
        return given, refused, allowed, x.grad, unused.grad, seen()

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("inputs", ["all", "one", "middle"])
def test_several_roots(inputs: str) -> None:
    def scenario(run: Run) -> object:
        x, y = leaf(), leaf()
        middle = cpp().cube(x) * y
        roots = [middle.sin().sum(), (middle * x).exp(), y.cos()]
        gradients = [torch.ones(()), torch.arange(4.0), torch.ones(4)]
        chosen = {"all": [], "one": [y], "middle": [middle, x]}[inputs]
        middle.retain_grad()
        with run.backward():
            cpp().backward(roots, gradients, UNSET, False, chosen)
        return x.grad, y.grad, middle.grad, seen()

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("gradients", ["missing", "too few", "wrong size", "not of floats"])
def test_requests_that_are_refused(gradients: str) -> None:
    def scenario(run: Run) -> object:
        x = leaf()
        roots = [x.sin(), x.cos()]
        given = {
            "missing": [],
            "too few": [torch.ones(4)],
            "wrong size": [torch.ones(4), torch.ones(3)],
            "not of floats": [torch.ones(4), torch.ones(4, dtype=torch.int64)],
        }[gradients]
        return run.attempt(lambda: cpp().backward(roots, given, UNSET, False, [])), x.grad

    assert_same_as_eager(scenario, Expected(captures=None))


KINDS = ("tensor", "tensor that returns nothing", "node pre", "node post", "accumulated")
DOES = ("looks", "halves", "backward inside", "wrong size", "raises", "fails a check", "standard type")


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (kind, place)
        for kind in KINDS
        for place in ("leaf", "intermediate", "root", "function")
        if kind != "accumulated" or place == "leaf"
    ],
)
@pytest.mark.parametrize("does", DOES)
def test_hooks(kind: str, place: str, does: str) -> None:
    def scenario(run: Run) -> object:
        x, y = leaf(), leaf()
        middle = x.exp() * y
        function = cpp().cube(middle)
        root = (function * middle).sin().sum()
        at = {"leaf": x, "intermediate": middle, "root": root, "function": function}[place]
        # Before and behind it others of both languages, whose order is seen.
        at.register_hook(lambda gradient: run.note("python", gradient))
        cpp().hook(at, "tensor", "first", "looks")
        cpp().hook(at, kind, "tried", does)
        cpp().hook(at, "tensor", "last", "halves")
        kept = x.view_as(x).grad_fn  # so that the node of the leaf stays, and its hooks with it
        out = [run.attempt(lambda: cpp().member_backward(root, None, YES, False)) for _ in range(2)]
        return out, x.grad, y.grad, seen(), kept is not None

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("does", ["raises", "fails a check", "standard type"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_caller_in_cpp_catches_from_hooks(kind: str, does: str) -> None:
    def scenario(run: Run) -> object:
        x = leaf()
        hidden = x.sin()
        cpp().hook(x if kind == "accumulated" else hidden, kind, "tried", does)
        loss = (hidden * hidden).sum()
        with run.backward():
            caught = cpp().caught(loss)
            after = cpp().caught((x * 2).sum()) if kind != "accumulated" else ""
        run.note(caught)
        assert caught != "nothing"
        return caught, after, x.grad, seen()

    assert_same_as_eager(scenario)


FAILURES = ("check", "own type", "standard type", "too few", "too many", "wrong size", "for a number")


@pytest.mark.parametrize("how", FAILURES)
def test_what_the_caller_in_cpp_catches_from_functions(how: str) -> None:
    def scenario(run: Run) -> object:
        x = leaf()
        loss = cpp().fails(x.sin(), how).sum()
        with run.backward():
            caught = cpp().caught(loss)
        return caught, run.attempt(cpp().fails(x.sin(), how).sum().backward), x.grad

    assert_same_as_eager(scenario)


def test_errors_of_python_go_through_cpp() -> None:
    def scenario(run: Run) -> object:
        x = leaf()
        hidden = x.sin()

        def fail(gradient: torch.Tensor) -> None:
            raise KeyError("a hook in Python")

        hidden.register_hook(fail)
        failed = run.attempt(lambda: cpp().member_backward(hidden.sum(), None, UNSET, False))
        return failed, run.attempt(lambda: cpp().member_backward(x.sin().sum(), None, UNSET, False)), x.grad

    assert_same_as_eager(scenario)


def test_retained_gradients() -> None:
    def scenario(run: Run) -> object:
        x = leaf()
        hidden = cpp().cube(x)
        cpp().hook(hidden, "tensor", "before", "halves")
        cpp().retain_grad(hidden)
        cpp().hook(hidden, "tensor", "behind", "halves")
        with run.backward():
            cpp().member_backward(hidden.sum(), None, UNSET, False)
        return hidden.grad, x.grad, seen()

    assert_same_as_eager(scenario)


def counted(session: backbind._capture.Session) -> int:
    """How many backwards a session ran by plans."""
    return session.stats.captures + session.stats.replays


SEEDS = [0, 1, 2, 3, 5, 6]


def test_training_in_cpp_is_captured() -> None:
    start = torch.randn(4, 4)
    expected, noted = cpp().train(start, 3, 5), seen()
    with backbind.capture() as session:
        trained = cpp().train(start, 3, 5)
    assert all(map(torch.equal, trained, expected))
    assert str(seen()) == str(noted)
    assert (session.stats.captures, session.stats.replays, session.stats.fallbacks) == (1, 4, 0)
    assert dict(session.stats.opaque_steps) == {
        "torch::autograd::CppNode<from_cpp::(anonymous namespace)::Cube>": 1
    }


@pytest.mark.parametrize("seeds", [SEEDS, [3] * 6], ids=["a graph each", "one graph"])
def test_threads_of_cpp_under_enable(seeds: list[int]) -> None:
    start = torch.randn(4, 4)
    expected = [one for seed in seeds for one in cpp().train(start, seed, 20)]
    session = backbind.enable()
    trained = cpp().train_in_threads(start, seeds, 20)
    backbind.disable()
    assert len(trained) == 120
    assert all(map(torch.equal, trained, expected))
    assert (counted(session), session.stats.fallbacks) == (120, 0)
    assert session.stats.captures >= len(set(seeds))
    seen()


def test_threads_of_cpp_are_in_no_context() -> None:
    start = torch.randn(4, 4)
    expected = [one for seed in SEEDS for one in cpp().train(start, seed, 10)]
    with backbind.capture() as session:
        trained = cpp().train_in_threads(start, SEEDS, 10)
        assert counted(session) == 0
        assert all(map(torch.equal, cpp().train(start, SEEDS[0], 10), expected))
    assert all(map(torch.equal, trained, expected))
    assert counted(session) == 10
    seen()


def test_a_thread_of_cpp_and_one_of_python() -> None:
    """Both at once in one process: the first under enable(), the other in a context of its own."""
    start = torch.randn(4, 4)
    expected = cpp().train(start, 2, 50)
    everyone = backbind.enable()
    results: list[Any] = []

    def python() -> None:
        with backbind.capture() as mine:
            results.extend([cpp().train(start, 2, 50), mine])

    thread = threading.Thread(target=python)
    thread.start()
    trained = cpp().train_in_threads(start, [2, 2], 50)
    thread.join()
    backbind.disable()
    assert all(map(torch.equal, trained, [*expected, *expected]))
    assert all(map(torch.equal, results[0], expected))
    assert (counted(everyone), counted(results[1])) == (100, 50)
    seen()


def total(value: torch.Tensor) -> torch.Tensor:
    return value.sum()


def _python_hooks(run: Run, x: torch.Tensor) -> torch.Tensor:
    hidden = apply(Doubled, x.sin())
    hidden.register_hook(lambda gradient: run.note("hook", gradient))
    x.register_post_accumulate_grad_hook(lambda one: run.note("accumulated", one.grad))
    return total(cpp().cube(hidden))


def _fails_in_python(run: Run, x: torch.Tensor) -> torch.Tensor:
    hidden = x.sin()

    def fail(gradient: torch.Tensor) -> None:
        raise ValueError("from a hook in Python")

    hidden.register_hook(fail)
    return hidden.sum()


def _fails_in_cpp(run: Run, x: torch.Tensor) -> torch.Tensor:
    return total(cpp().fails(x.sin(), "own type"))


GRAPHS_OF_PYTHON: dict[str, Callable[[Run, torch.Tensor], torch.Tensor]] = {
    "hooks": _python_hooks,
    "fails in Python": _fails_in_python,
    "fails in C++": _fails_in_cpp,
    "is freed": lambda run, x: x.sin().sum(),
}


@pytest.mark.parametrize("graph", GRAPHS_OF_PYTHON)
@pytest.mark.parametrize("repeated", [1, 3])
def test_graphs_of_python_in_threads_of_cpp(graph: str, repeated: int) -> None:
    def scenario(run: Run) -> object:
        leaves = [leaf() for _ in range(repeated)]
        errors = []
        before = counted_of_process()
        for x in leaves:
            # One thread each, one after the other, so that notes have an order.
            with run.backward():
                errors.append(cpp().backward_in_threads([GRAPHS_OF_PYTHON[graph](run, x)]))
        # Contexts belong to the threads that entered them.
        expected = repeated if run.name == "enabled" else 0
        assert counted_of_process() - before == expected
        return errors, [x.grad for x in leaves], seen()

    assert_same_as_eager(scenario, Expected(captures=None))


def counted_of_process() -> int:
    stats = backbind.stats()
    return stats.captures + stats.replays


def test_one_graph_in_several_threads_of_cpp() -> None:
    x, y = (torch.arange(4.0, requires_grad=True) for _ in range(2))
    loss, twin = cpp().cube(x.exp()).sum(), cpp().cube(y.exp()).sum()
    for _ in range(8):
        cpp().backward_in_threads([loss])
    assert x.grad is not None
    session = backbind.enable()
    errors = cpp().backward_in_threads([twin] * 8)
    backbind.disable()
    assert errors == [""] * 8
    # Which thread adds first is not told, and the sum of equal gradients does not care.
    assert y.grad is not None
    assert torch.equal(x.grad, y.grad)
    assert counted(session) == 8
    seen()
