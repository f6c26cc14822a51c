"""Coroutines and generators that take turns in the middle of their contexts of capture."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager

import backbind
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

ENTER, LEAVE, BACKWARD = "enter", "leave", "backward"

_scripts = st.lists(st.lists(st.sampled_from((ENTER, LEAVE, BACKWARD)), max_size=6), min_size=1, max_size=3)
_turns = st.lists(st.integers(0, 2), max_size=20)


class _Actor:
    """Follows a script, one act at a time, in contexts of its own."""

    def __init__(self, script: list[str]) -> None:
        self.script = script
        self.contexts: list[AbstractContextManager[backbind.Session]] = []
        self.sessions: list[backbind.Session] = []
        self.gradients: list[torch.Tensor | None] = []

    def act(self, act: str) -> None:
        if act == ENTER:
            self.contexts.append(backbind.capture())
            self.sessions.append(self.contexts[-1].__enter__())
        elif act == LEAVE and self.contexts:
            self.contexts.pop().__exit__(None, None, None)
            self.sessions.pop()
        elif act == BACKWARD:
            self.gradients.append(_gradient())

    def leave_all(self) -> None:
        while self.contexts:
            self.act(LEAVE)


def _gradient() -> torch.Tensor | None:
    leaf = torch.arange(3.0, requires_grad=True)
    (leaf.sin() * leaf).sum().backward()
    return leaf.grad


def _backwards(session: backbind.Session) -> int:
    return session.stats.captures + session.stats.replays


def _expect_nothing_captured() -> None:
    before = backbind.stats()
    _gradient()
    assert backbind.stats() == before
    assert not backbind.is_enabled()


def _expect_gradients(actors: list[_Actor]) -> None:
    right = _gradient()
    assert right is not None
    for actor in actors:
        assert len(actor.gradients) == actor.script.count(BACKWARD)
        assert all(one is not None and one.equal(right) for one in actor.gradients)


@settings(max_examples=50, deadline=None)
@given(_scripts)
def test_a_coroutine_is_captured_by_its_own_contexts_alone(scripts: list[list[str]]) -> None:
    actors = [_Actor(script) for script in scripts]

    async def play(actor: _Actor) -> None:
        for act in actor.script:
            counts = [_backwards(session) for session in actor.sessions]
            before = backbind.stats()
            actor.act(act)
            if act == BACKWARD and actor.sessions:
                # The innermost context has it, and no other.
                added = [
                    _backwards(session) - count for session, count in zip(actor.sessions, counts, strict=True)
                ]
                assert added == [0] * (len(added) - 1) + [1]
            elif act == BACKWARD:
                assert backbind.stats() == before
            await asyncio.sleep(0)
        actor.leave_all()

    async def play_all() -> None:
        await asyncio.gather(*map(play, actors))

    asyncio.run(play_all())
    _expect_gradients(actors)
    _expect_nothing_captured()


@settings(max_examples=50, deadline=None)
@given(_scripts, _turns)
def test_generators_leave_nothing_captured(scripts: list[list[str]], turns: list[int]) -> None:
    actors = [_Actor(script) for script in scripts]

    def play(actor: _Actor) -> Iterator[None]:
        for act in actor.script:
            actor.act(act)
            yield
        actor.leave_all()

    playing = [play(actor) for actor in actors]
    for turn in turns:
        next(playing[turn % len(playing)], None)
    for generator in playing:
        for _ in generator:
            pass
    _expect_gradients(actors)
    _expect_nothing_captured()
