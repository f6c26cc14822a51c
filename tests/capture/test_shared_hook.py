"""The engine's entry, which torch's compiled autograd and we share: who holds it, and that it stays where it is while
compiled autograd only goes from off to off.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import backbind
import pytest
import torch
import torch._dynamo.compiled_autograd as stock

_space: Any = torch._C._dynamo.compiled_autograd


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, bool]]:
    """What reaches torch's own function, which changes the entry, from here on."""
    with backbind.capture():
        pass
    seen: list[tuple[object, bool]] = []
    original = _space.set_autograd_compiler._stock

    def recorded(compiler: object, dynamic: bool) -> object:
        seen.append((compiler, dynamic))
        return original(compiler, dynamic)

    monkeypatch.setattr(_space.set_autograd_compiler, "_stock", recorded)
    return seen


def _square(x: torch.Tensor) -> torch.Tensor:
    return (x * x).sum()


def _fails(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("no")


def _grad_that_fails() -> None:
    with contextlib.suppress(ValueError):
        torch.func.grad(_fails)(torch.ones(2))


def _nested_disable() -> None:
    with stock._disable(), stock._disable():
        _captured_backward()


def _captured_backward() -> None:
    with backbind.capture() as session:
        backward()
    assert session.stats.captures + session.stats.replays == 1


def backward() -> None:
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


OFF_AND_ON: dict[str, Callable[[], object]] = {
    "disable": lambda: stock._disable().__enter__(),
    "nested disable": _nested_disable,
    "grad": lambda: torch.func.grad(_square)(torch.ones(2)),
    "grad that fails": _grad_that_fails,
    "vmap of grad": lambda: torch.func.vmap(torch.func.grad(_square))(torch.ones(2, 2)),
    "jvp": lambda: torch.func.jvp(_square, (torch.ones(2),), (torch.ones(2),)),
    "vjp": lambda: torch.func.vjp(_square, torch.ones(2))[1](torch.ones(())),
    "jacrev": lambda: torch.func.jacrev(torch.sin)(torch.ones(2)),
    "hessian": lambda: torch.func.hessian(_square)(torch.ones(2)),
    "reset": stock.reset,
}
"""What switches compiled autograd off, which was off, and maybe on again."""


@pytest.mark.parametrize("name", OFF_AND_ON)
def test_off_to_off_leaves_the_entry_alone(name: str, calls: list[tuple[object, bool]]) -> None:
    OFF_AND_ON[name]()
    assert calls == []
    _captured_backward()
    assert calls == []


def _compiler(graph: torch.fx.GraphModule) -> Callable[..., Any]:
    return graph.forward


def test_compiled_autograd_gets_the_entry_and_gives_it_back(calls: list[tuple[object, bool]]) -> None:
    with backbind.capture() as session:
        _space.set_autograd_compiler(_compiler, True)
        # Off while it was on, as inside of a transform: the entry is ours meanwhile.
        assert _space.set_autograd_compiler(None, False) == (_compiler, True)
        backward()
        assert _space.set_autograd_compiler(_compiler, True) == (None, False)
        assert _space.set_autograd_compiler(None, False) == (_compiler, True)
        OFF_AND_ON["disable"]()
        backward()
    assert calls == [(_compiler, True), (None, False)] * 2
    assert session.stats.captures + session.stats.replays == 2


def test_an_entry_that_torch_does_not_let_go_is_asked_for_again(
    calls: list[tuple[object, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> None:
        raise RuntimeError("requires no threads in backwards()")

    with backbind.capture():
        with monkeypatch.context() as patch:
            patch.setattr(_space.set_autograd_compiler, "_take", refused)
            _space.set_autograd_compiler(_compiler, True)
            assert _space.set_autograd_compiler(None, False) == (_compiler, True)
        OFF_AND_ON["grad"]()
        assert len(calls) == 3
    _captured_backward()


@pytest.mark.parametrize("sequence", itertools.product([True, False, None], repeat=4))
def test_what_was_set_before_is_told_as_torch_tells_it(sequence: tuple[bool | None, ...]) -> None:
    """``None`` switches off, with dynamic sizes; the others do so too, or on, with and without them."""

    def run(call: Callable[[object, bool], object]) -> list[object]:
        call(None, False)
        told = [call(None if step is None else _compiler, bool(step)) for step in sequence]
        told += [call(None, True), call(None, False), call(None, False)]
        return told

    with backbind.capture():
        pass
    expected = run(inspect.unwrap(_space.set_autograd_compiler))
    assert run(_space.set_autograd_compiler) == expected
    _captured_backward()


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("frequent_switches")
@pytest.mark.parametrize("name", ["disable", "grad", "vmap of grad", "jvp"])
def test_backwards_of_other_threads_are_not_disturbed(name: str, calls: list[tuple[object, bool]]) -> None:
    errors: list[Exception] = []
    counts = [0, 0, 0]
    stop = threading.Event()

    def innocent(i: int) -> None:
        x = torch.ones(2, requires_grad=True)
        loss = (x * 2).sum()
        while not stop.is_set():
            try:
                torch.autograd.grad(loss, x, retain_graph=True)
            except RuntimeError as error:
                errors.append(error)
            counts[i] += 1

    threads = [threading.Thread(target=innocent, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    try:
        while min(counts) < 20:
            for _ in range(10):
                OFF_AND_ON[name]()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert calls == []
