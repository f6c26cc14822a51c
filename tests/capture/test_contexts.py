"""Contexts that overlap: tasks of an event loop, generators, threads, stacks that are closed in another order.

What counts is which of them are open, and in which task and thread, not in what order they are left.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import backbind
import pytest
import torch
from backbind._capture import Session


def backward() -> None:
    torch.ones(3, requires_grad=True).sin().sum().backward()


def ran(session: Session) -> int:
    return session.stats.captures + session.stats.replays


def captured(*sessions: Session) -> list[int]:
    """Which of the sessions a backward runs in now."""
    before = [ran(session) for session in sessions]
    backward()
    assert backbind.is_enabled() == ([ran(session) for session in sessions] != before)
    return [i for i, session in enumerate(sessions) if ran(session) > before[i]]


@pytest.fixture(autouse=True)
def nothing_stays_captured() -> Iterator[None]:
    assert not backbind.is_enabled()
    yield
    assert not backbind.is_enabled()
    before = backbind.stats().steps
    backward()
    assert backbind.stats().steps == before


ORDERS = [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0), (0, 2, 1), (2, 0, 1)]


@pytest.mark.parametrize("order", ORDERS)
def test_contexts_left_in_any_order(order: tuple[int, ...]) -> None:
    contexts = [backbind.capture() for _ in range(3)]
    sessions = [context.__enter__() for context in contexts]
    still_open = [0, 1, 2]
    assert captured(*sessions) == [2]
    for left in order:
        contexts[left].__exit__(None, None, None)
        still_open.remove(left)
        assert captured(*sessions) == still_open[-1:]


@pytest.mark.parametrize("order", ORDERS)
def test_one_context_entered_thrice(order: tuple[int, ...]) -> None:
    context = backbind.capture()
    other = backbind.capture()
    stacks = [contextlib.ExitStack() for _ in range(3)]
    for stack, entered in zip(stacks, (context, other, context), strict=True):
        stack.enter_context(entered)
    for left in order:
        assert backbind.is_enabled()
        stacks[left].close()


def test_an_exception_inside_an_inner_context() -> None:
    outer = backbind.capture()
    with outer as session:
        with pytest.raises(ValueError, match=r"^no$"), backbind.capture():
            raise ValueError("no")
        assert captured(session) == [0]


@pytest.mark.parametrize("entered", [0, 1, 2])
def test_leaving_too_often_is_refused(entered: int) -> None:
    context = backbind.capture()
    for _ in range(entered):
        context.__enter__()
    for _ in range(entered):
        context.__exit__(None, None, None)
    with pytest.raises(RuntimeError) as raised:
        context.__exit__(None, None, None)
    assert str(raised.value) == (
        "this capture() is left more often than it was entered; "
        "use it as 'with backbind.capture(): ...', or call __exit__ once for each __enter__"
    )


def test_tasks_have_their_own() -> None:
    async def task(context: Any, entered: asyncio.Event, go_on: asyncio.Event) -> list[list[int]]:
        found = [captured()]
        with context as session:
            found.append(captured(session))
            entered.set()
            await go_on.wait()
            found.append(captured(session))
        found.append(captured(session))
        return found

    async def main() -> list[Any]:
        events = [asyncio.Event() for _ in range(3)]
        contexts = [backbind.capture(), backbind.capture()]

        async def bystander() -> list[list[int]]:
            await events[0].wait()
            first = captured(*(context.session for context in contexts))
            await events[1].wait()
            second = captured(*(context.session for context in contexts))
            events[2].set()
            return [first, second]

        return list(
            await asyncio.gather(
                task(contexts[0], events[0], events[1]), task(contexts[1], events[1], events[2]), bystander()
            )
        )

    first, second, other = asyncio.run(main())
    assert first == second == [[], [0], [0], []]
    assert other == [[], []]


@pytest.mark.parametrize("shared", [False, True])
def test_tasks_that_overlap_leave_nothing(shared: bool) -> None:
    one = backbind.capture()

    async def task(seconds: float) -> list[int]:
        context = one if shared else backbind.capture()
        with context as session:
            await asyncio.sleep(seconds)
            return captured(session)

    async def main() -> list[list[int]]:
        return list(await asyncio.gather(*(task(seconds) for seconds in (0.003, 0.001, 0.002))))

    assert asyncio.run(main()) == [[0], [0], [0]]


def test_a_task_started_inside_is_inside_until_its_starter_leaves() -> None:
    async def child(session: Session, left: asyncio.Event) -> list[list[int]]:
        inside = captured(session)
        await left.wait()
        return [inside, captured(session)]

    async def main() -> list[list[int]]:
        left = asyncio.Event()
        with backbind.capture() as session:
            task = asyncio.create_task(child(session, left))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        left.set()
        return await task

    assert asyncio.run(main()) == [[0], []]


def test_a_cancelled_task_leaves_nothing() -> None:
    async def task(entered: asyncio.Event) -> None:
        with backbind.capture():
            entered.set()
            await asyncio.sleep(10)

    async def main() -> None:
        entered = asyncio.Event()
        running = asyncio.create_task(task(entered))
        await entered.wait()
        assert captured() == []
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())


def test_an_asynchronous_generator_that_is_not_finished() -> None:
    async def generator() -> AsyncIterator[int]:
        with backbind.capture():
            yield 1
            yield 2

    async def main() -> None:
        async for _ in generator():
            break
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(main())


def _generator(context: Any) -> Generator[int, None, None]:
    with context:
        yield 1
        yield 2


def test_generators_that_take_turns() -> None:
    contexts = [backbind.capture(), backbind.capture()]
    sessions = [context.session for context in contexts]
    first, second = (_generator(context) for context in contexts)
    next(first)
    assert captured(*sessions) == [0]
    next(second)
    assert captured(*sessions) == [1]
    first.close()
    assert captured(*sessions) == [1]
    second.close()
    assert captured(*sessions) == []


def _in_thread(call: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


def test_left_in_another_thread() -> None:
    context = backbind.capture()
    session = context.__enter__()
    assert captured(session) == [0]
    assert _in_thread(lambda: captured(session)) == []
    _in_thread(lambda: context.__exit__(None, None, None))
    assert captured(session) == []


def test_a_context_that_is_carried_to_another_thread_does_not_capture_there() -> None:
    with backbind.capture() as session:
        copied = contextvars.copy_context()
        assert _in_thread(lambda: copied.run(captured, session)) == []
        assert captured(session) == [0]

    async def main() -> list[int]:
        with backbind.capture() as inner:
            return await asyncio.to_thread(captured, inner)

    assert asyncio.run(main()) == []


def test_contexts_of_python() -> None:
    empty = contextvars.copy_context()
    with backbind.capture() as session:
        copied = contextvars.copy_context()
        assert copied.run(captured, session) == [0]
        assert empty.run(captured, session) == []
        assert captured(session) == [0]
    assert copied.run(captured, session) == []


def test_tasks_beside_a_process_that_is_enabled() -> None:
    async def task() -> list[int]:
        with backbind.capture() as session:
            await asyncio.sleep(0)
            return captured(enabled, session)

    async def main() -> list[list[int]]:
        return list(await asyncio.gather(task(), task()))

    enabled = backbind.enable()
    try:
        assert asyncio.run(main()) == [[1], [1]]
        assert captured(enabled) == [0]
    finally:
        backbind.disable()


def test_many_tasks_in_many_threads() -> None:
    def loop() -> list[list[int]]:
        async def task(i: int) -> list[int]:
            found: list[int] = []
            for _ in range(3):
                with backbind.capture() as session:
                    await asyncio.sleep(0)
                    found += captured(session)
                    await asyncio.sleep(0.0001 * (i % 3))
                found += captured(session)
            return found

        async def main() -> list[list[int]]:
            return list(await asyncio.gather(*(task(i) for i in range(5))))

        return asyncio.run(main())

    results: list[list[list[int]]] = []
    threads = [threading.Thread(target=lambda: results.append(loop())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[[0, 0, 0]] * 5] * 3
