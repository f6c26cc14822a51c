"""Captures eager backwards and replays them: ``with backbind.capture(): loss.backward()``."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, overload

from backbind import _C
from backbind._torch_private import install_engine, install_engine_hook, stock_compiled_autograd_is_active
from backbind.graph.backends import Compiler, find_backend

_P = ParamSpec("_P")
_R = TypeVar("_R")

_logger = logging.getLogger("backbind.capture")


@dataclass(frozen=True, slots=True)
class Stats:
    """What became of the backwards of a session, or of the process.

    Reasons are texts for people. Only so many of each kind have a count of their own; the rarest are counted together
    as "others".
    """

    captures: int
    """Backwards for which a plan was made."""
    replays: int
    """Backwards that were run by the plan of an earlier one."""
    steps: int
    """Autograd nodes that plans ran."""
    plans: int
    """Plans that are held now, by the whole process: 128 at most, those used last."""
    plan_bytes: int
    """What these take of memory: 64 MiB at most."""
    fallbacks: int
    """Backwards that were left to the autograd engine."""
    look_up_seconds: float
    """Time spent looking for plans that fit, over all backwards."""
    capture_seconds: float
    """Time spent making plans."""
    recapture_reasons: Mapping[str, int]
    """Why backwards were captured although a plan nearly fitted, and how often.

    A plan nearly fits if the backward begins at as many tensors of the same operators, asks for as many gradients, and
    at least the first half of the plan's steps are the same: the program is most likely the same, a little changed. The
    first backward of another model or of another loss is a capture without a reason. Each change costs one capture; a
    reason whose count grows with every backward tells what to keep constant in the forward, or which backward to leave
    outside ``capture()``.
    """
    fallback_reasons: Mapping[str, int]
    """Why backwards were left to the engine, and how often."""
    opaque_steps: Mapping[str, int]
    """Nodes in captured plans of which nothing more is known than how to call them, by name."""
    slow_path_reasons: Mapping[str, Mapping[str, int]]
    """Why steps took the slow path: were run by the live node with all of autograd's machinery. For each reason, how
    often each type of node did. All functions of Python are counted as ``torch.autograd.Function``. Steps that are not
    counted here were run by their formulas, or added to their leaf, below autograd's dispatch keys."""
    graphs: int = 0
    """Graphs that were printed and compiled, by backends that do so."""
    compile_seconds: float = 0.0
    """Time spent on that."""
    recompile_reasons: Mapping[str, int] = field(default_factory=dict)
    """Why a graph was compiled although one of the same plan was held, and how often: a size, a number or something
    else that was baked in has changed."""
    native_reasons: Mapping[str, int] = field(default_factory=dict)
    """Why backwards, or what was left of them, were run natively although a graph was wanted, and how often."""

    def __str__(self) -> str:
        lines = [
            f"{self.captures} captures, {self.replays} replays, {self.steps} steps, {self.plans} plans held, "
            f"{self.fallbacks} left to the engine"
            + (f", {self.graphs} graphs compiled" if self.graphs else "")
        ]
        for title, counted in (
            ("recaptured:", self.recapture_reasons),
            ("left to the engine because of", self.fallback_reasons),
            ("opaque step", self.opaque_steps),
            ("compiled again:", self.recompile_reasons),
            ("run natively because of", self.native_reasons),
        ):
            lines += [f"  {title} {what}: {count}" for what, count in counted.items()]
        for reason, nodes in self.slow_path_reasons.items():
            counts = ", ".join(
                f"{node} {count}"
                for node, count in sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
            )
            lines.append(f"  slow path because of {reason}: {counts}")
        return "\n".join(lines)


class Session:
    """The backwards that ran under one ``capture()``."""

    def __init__(self, backend: str | Compiler, **options: Any) -> None:
        self.backend = backend if isinstance(backend, str) else getattr(backend, "__name__", repr(backend))
        """Its name."""
        self._handle = _C.new_session(find_backend(backend, **options))

    @property
    def stats(self) -> Stats:
        """What became of them so far."""
        return _read(self._handle)

    def __repr__(self) -> str:
        return f"<backbind session, backend {self.backend!r}: {str(self.stats).partition(chr(10))[0]}>"


class _Thread(threading.local):
    """Something of which each thread has its own, unlike its number, which another may have later."""

    def __init__(self) -> None:
        self.token = object()


_this_thread = _Thread()


@dataclass(slots=True, eq=False)
class _Entry:
    """One time that a context manager or a decorated function was entered."""

    capture: Capture
    thread: object
    """The `_Thread.token` of the thread whose backwards it captures."""
    is_open: bool = True


_entries: ContextVar[tuple[_Entry, ...]] = ContextVar("backbind.capture", default=())
"""What was entered in the running context or in those that it was copied from, the innermost last.

An entry that was left elsewhere may still be here, so `_Entry.is_open` is what counts.
"""


def _enter(capture: Capture) -> _Entry:
    _install_engine_hook()
    entry = _Entry(capture, _this_thread.token)
    _set_entries((*_entries.get(), entry))
    return entry


def _leave(entry: _Entry) -> None:
    """Ends an entry, wherever it stands and whoever calls."""
    entry.is_open = False
    _set_entries(_entries.get())
    if entry.thread is not _this_thread.token:
        _C.invalidate_context_sessions()


def _set_entries(entries: tuple[_Entry, ...]) -> None:
    _entries.set(tuple(entry for entry in entries if entry.is_open))
    _C.set_context_session(_session_of_context())


def _session_of_context() -> _C.SessionHandle | None:
    """What the running context has chosen for this thread."""
    for entry in reversed(_entries.get()):
        if entry.is_open and entry.thread is _this_thread.token:
            return entry.capture.session._handle
    return None


_C.set_context_lookup(_session_of_context)


class Capture:
    """What `capture` gives: a context manager, which may be entered again and again, and a decorator."""

    def __init__(self, backend: str | Compiler, **options: Any) -> None:
        self.session = Session(backend, **options)
        self._open: list[_Entry] = []

    def __enter__(self) -> Session:
        self._open.append(_enter(self))
        return self.session

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entry = self._entry_to_leave()
        if entry is None:
            raise RuntimeError(
                "this capture() is left more often than it was entered; "
                "use it as 'with backbind.capture(): ...', or call __exit__ once for each __enter__"
            )
        self._open.remove(entry)
        _leave(entry)

    def _entry_to_leave(self) -> _Entry | None:
        """The one of this context that was entered last; where it has none, that of any."""
        for entry in reversed(_entries.get()):
            if entry in self._open and entry.thread is _this_thread.token:
                return entry
        return self._open[-1] if self._open else None

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """``function`` with its backwards captured; all calls share one session, ``function.session``."""
        if (
            inspect.isgeneratorfunction(function)
            or inspect.iscoroutinefunction(function)
            or inspect.isasyncgenfunction(function)
        ):
            raise TypeError(
                f"capture() cannot decorate {function.__qualname__}(), which stops and goes on while others run; "
                "enter capture() around the backward inside it"
            )

        @functools.wraps(function)
        def captured(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            # An entry of its own for each call, because several threads may be inside the function.
            entry = _enter(self)
            try:
                return function(*args, **kwargs)
            finally:
                _leave(entry)

        captured.session = self.session  # type: ignore[attr-defined]
        return captured


@overload
def capture(function: Callable[_P, _R], /) -> Callable[_P, _R]: ...
@overload
def capture(
    function: None = None,
    /,
    *,
    backend: str | Compiler = ...,
    dynamic: bool | None = ...,
    fullgraph: bool = ...,
    options: Mapping[str, Any] | None = ...,
) -> Capture: ...
def capture(
    function: Callable[_P, _R] | None = None,
    /,
    *,
    backend: str | Compiler = "native",
    dynamic: bool | None = None,
    fullgraph: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Capture | Callable[_P, _R]:
    """Run the backwards of this thread by plans instead of by the autograd engine.

    The first backward of a kind is captured: a walk over the live graph makes a plan of it, in milliseconds and without
    running anything. That plan runs this backward and every later one whose graph has the same structure, whatever its
    sizes and values are. A caller sees what the engine would have done: the same bits, hooks, errors::

        with backbind.capture() as session:
            for batch in data:
                loss = model(batch).sum()
                loss.backward()
        print(session.stats)

    It is also a decorator, with or without parentheses. Contexts nest; the innermost that is open counts, also where
    they are not left in the order in which they were entered. Tasks of an event loop each have their own: what one task
    enters counts for it and for tasks that it starts meanwhile, as with `contextvars`, and for this thread only. What a
    generator enters counts for its caller too, until the generator leaves it. While torch's own compiled autograd is
    active, backwards are left to it.

    Args:
        function: what to decorate, where there are no parentheses.
        backend: what runs a plan; `backends` lists the names.

            - ``"native"``: a loop in C++ that calls the nodes of the live graph. The fastest without a compiler.
            - ``"graph"``: the backward is printed as a torch.fx graph, which runs by generated Python.
            - a name that ``torch.compile`` knows (``"inductor"``, ``"aot_eager"``): that graph, compiled.
            - a function: it is given the graph, a ``torch.fx.GraphModule``, and gives what is called in its place with
              the lists ``(inputs, sizes, scalars, hooks, packed_data)``, as torch's compiled autograd does it.
        dynamic: which sizes and numbers a graph takes as arguments: those that were seen to change (None), all (True)
            or none (False). ``torch.compile`` is given it too.
        fullgraph: as for ``torch.compile``: raise where a part of the backward cannot be compiled.
        options: for ``torch.compile``.

    Raises:
        ValueError: no backend has that name, or it has no use for an option.
        TypeError: what is decorated is no function, or a generator or a coroutine; the backend is neither a name nor a
            function.
    """
    if function is not None and not callable(function):
        raise TypeError(
            f"capture() decorates a function, got {type(function).__name__}; a backend is given by name: "
            f"capture(backend={function!r})"
        )
    made = Capture(backend, dynamic=dynamic, fullgraph=fullgraph, options=options)
    return made if function is None else made(function)


_enabled: list[Session] = []
"""The session of the whole process while there is one; the engine has one entry for the process too."""


def enable(
    *,
    backend: str | Compiler = "native",
    dynamic: bool | None = None,
    fullgraph: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Session:
    """Capture the backwards of every thread, until `disable`; threads inside ``capture()`` keep their own session.

    Args and errors: those of `capture`.
    """
    session = Session(backend, dynamic=dynamic, fullgraph=fullgraph, options=options)
    _install_engine_hook()
    _C.set_process_session(session._handle)
    _enabled[:] = [session]
    return session


def disable() -> None:
    """End what `enable` began."""
    _C.set_process_session(None)
    _enabled.clear()


def is_enabled() -> bool:
    """Whether a backward of this thread would be captured now."""
    return _C.is_capturing() and not stock_compiled_autograd_is_active()


def stats() -> Stats:
    """What became of all backwards of the process that any session saw."""
    return _read(None)


def reset() -> None:
    """Forget all plans and set `stats` to zero. Sessions go on, and capture anew."""
    _C.clear_plans()
    _C.clear_counts()


def _read(handle: _C.SessionHandle | None) -> Stats:
    counts = _C.counts(handle)
    captures, replays, steps, look_up, capturing, recaptured, left, opaque, slow = counts[:9]
    graphs, compiling, recompiled, native = counts[9:]
    plans, plan_bytes = _C.plans_held()
    return Stats(
        captures,
        replays,
        steps,
        plans,
        plan_bytes,
        sum(left.values()),
        look_up,
        capturing,
        recaptured,
        left,
        opaque,
        slow,
        graphs,
        compiling,
        recompiled,
        native,
    )


def _install_engine_hook() -> None:
    if stock_compiled_autograd_is_active():
        _logger.info("torch's compiled autograd is active: backwards are left to it")
        return
    try:
        install_engine_hook(_C.install_engine_hook, _C.set_engine_hook_is_ours)
        install_engine(_C.run_backward)
    except RuntimeError as error:
        # Another thread is inside a backward of torch's compiled autograd. This one then runs as eager does.
        _logger.warning("backwards are left to the engine: %s", error)


def _log(kind: str, text: str) -> None:
    _logger.info("%s: %s", kind, text)


_C.set_listener(_log)
