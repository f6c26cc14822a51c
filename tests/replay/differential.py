"""Runs one scenario under the autograd engine and under capture, and says in which way the two differ.

A scenario is a function that builds its own world, runs its backwards inside ``run.backward()``, notes what it sees on
the way with ``run.note(...)`` and returns what is to be compared. It is run seven times: by the engine alone; captured
with no plan held; captured again, with the plans of the run before; in a process that has ``backbind.enable()`` on; and
by the backend ``graph``, which has the same plans, first with no graph held, then with those of the run before.
Each captured run must have seen what the engine's run saw, to the bit: values, strides, versions, the order of what was
noted, errors by type and whole text, warnings, and the modes that are on afterwards. And once more by the engine after
all that, because what was captured before is not to show in a backward that is not.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import backbind
import torch

from tests.oracle.compare import tensor_difference


@dataclass(frozen=True)
class Raised:
    """An exception, as far as its reader can tell."""

    kind: str
    text: str
    cause: Raised | None = None

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        cause = error.__cause__
        return cls(type(error).__name__, str(error), None if cause is None else cls.of(cause))


@dataclass(frozen=True)
class FrozenTensor:
    """A tensor as it was when it was noted. Later changes in place do not reach it."""

    facts: tuple[tuple[str, object], ...]
    bits: torch.Tensor


def _facts(tensor: torch.Tensor) -> tuple[tuple[str, object], ...]:
    is_plain = tensor.layout == torch.strided and not tensor.is_nested
    return (
        ("type", type(tensor).__name__),
        ("dtype", str(tensor.dtype)),
        ("shape", None if tensor.is_nested else tuple(tensor.shape)),
        ("strides", tensor.stride() if is_plain else None),
        ("offset", tensor.storage_offset() if is_plain else None),
        ("device", str(tensor.device)),
        ("is_leaf", tensor.is_leaf),
        ("requires_grad", tensor.requires_grad),
        ("node", None if tensor.grad_fn is None else tensor.grad_fn.name()),
        ("is_inference", tensor.is_inference()),
        ("version", None if tensor.is_inference() else tensor._version),
        ("is_view", None if tensor.is_nested else tensor._is_view()),
    )


def freeze(value: object) -> object:
    """A copy of ``value`` that nothing can change any more; tensors keep the facts that a copy would lose."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            detached = value.detach()
            return FrozenTensor(_facts(value), detached if value.is_meta else detached.clone())
    if isinstance(value, tuple | list):
        return tuple(freeze(one) for one in value)
    if isinstance(value, Mapping):
        return {key: freeze(one) for key, one in value.items()}
    if value is None or isinstance(value, str | int | float | complex | bool | Raised):
        return value
    if isinstance(value, torch.dtype | torch.layout | torch.device | type):
        return str(value)
    raise TypeError(f"a scenario noted {value!r}, of which no copy can be compared; note its parts")


@dataclass
class Run:
    """What a scenario is given: how to run a backward, and where to note what it sees."""

    name: str
    enter: Callable[[], contextlib.AbstractContextManager[object]]
    log: list[object] = field(default_factory=list)

    def backward(self) -> contextlib.AbstractContextManager[object]:
        """The context in which the scenario's backwards belong."""
        return self.enter()

    def note(self, *what: object) -> None:
        """Notes what is seen now, in the order in which it is seen."""
        self.log.append(freeze(what))

    def attempt(self, call: Callable[[], object]) -> object:
        """What ``call`` gives inside `backward`, or the exception that it raises."""
        try:
            with self.backward():
                return call()
        except Exception as error:  # whatever it is, it must be the same everywhere
            return Raised.of(error)


Scenario = Callable[[Run], object]


def apply(function: Any, *args: Any) -> Any:
    """``function.apply(...)``, which torch leaves untyped."""
    return function.apply(*args)


@dataclass(frozen=True)
class Observed:
    """All that one run of a scenario showed."""

    value: object
    log: tuple[object, ...]
    warned: tuple[object, ...]
    modes_afterwards: Mapping[str, object]


def modes() -> dict[str, object]:
    """The modes of this thread that a backward could leave changed."""
    return {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "autocast dtype": str(torch.get_autocast_dtype("cpu")),
        "anomaly mode": torch.is_anomaly_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "default dtype": str(torch.get_default_dtype()),
        "running backward": torch._C._current_graph_task_id(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "function modes": torch._C._len_torch_function_stack(),
    }


def observe(scenario: Scenario, run: Run) -> Observed:
    """Runs a scenario once."""
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Given once for each piece of torch that is loaded late.
        warnings.filterwarnings("ignore", message="`torch.jit", category=DeprecationWarning)
        always = torch.is_warn_always_enabled()
        torch.set_warn_always(True)
        try:
            value = freeze(scenario(run))
        except Exception as error:  # as in Run.attempt
            if run.name == "eager":
                raise  # then the scenario shows nothing; it is to use Run.attempt for what may fail
            value = Raised.of(error)
        finally:
            torch.set_warn_always(always)
    warned = tuple((one.category.__name__, str(one.message)) for one in caught)
    return Observed(value, tuple(run.log), warned, modes())


def differences(expected: object, actual: object, where: str) -> Iterator[str]:
    """In which ways two frozen values differ, each with its place."""
    if isinstance(expected, FrozenTensor) and isinstance(actual, FrozenTensor):
        yield from (
            f"{where}: expected {name} {left}, got {right}"
            for (name, left), (_, right) in zip(expected.facts, actual.facts, strict=True)
            if left != right
        )
        if not expected.bits.is_meta and not actual.bits.is_meta:
            found = tensor_difference(expected.bits, actual.bits)
            if found:
                yield f"{where}: {found}"
    elif isinstance(expected, tuple) and isinstance(actual, tuple):
        for i, (left, right) in enumerate(zip(expected, actual, strict=False)):
            yield from differences(left, right, f"{where}[{i}]")
        if len(expected) != len(actual):
            shorter = min(len(expected), len(actual))
            rest = (expected if len(expected) > len(actual) else actual)[shorter:]
            what = "missing" if len(expected) > len(actual) else "surplus"
            yield f"{where}: expected {len(expected)} items, got {len(actual)}; {what}: {_shown(rest)}"
    elif isinstance(expected, dict) and isinstance(actual, dict):
        if list(expected) != list(actual):
            yield f"{where}: expected keys {list(expected)}, got {list(actual)}"
        for key in expected.keys() & actual.keys():
            yield from differences(expected[key], actual[key], f"{where}[{key!r}]")
    elif isinstance(expected, float) and isinstance(actual, float) and expected != expected:
        if actual == actual:
            yield f"{where}: expected NaN, got {actual!r}"
    elif type(expected) is not type(actual) or expected != actual:
        yield f"{where}: expected {_shown(expected)}, got {_shown(actual)}"


def _shown(value: object) -> str:
    if isinstance(value, FrozenTensor):
        return (
            f"tensor {dict(value.facts)['shape']} {value.bits.tolist() if value.bits.numel() < 9 else '...'}"
        )
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    return repr(value)


@dataclass(frozen=True)
class Expected:
    """How a scenario's backwards are to be run, as the session tells it afterwards."""

    captures: bool | None = True
    """Whether the first captured run makes plans; None where that is not judged."""
    held: bool = True
    """Whether the second captured run makes none, because each of its graphs has a plan."""
    fallbacks: tuple[str, ...] = ()
    """Why backwards are left to the engine."""


def assert_same_as_eager(scenario: Scenario, expected: Expected | None = None) -> None:
    """Fails with every difference between the engine's run of ``scenario`` and the captured ones."""
    expected = expected or Expected()
    problems: list[str] = []
    reference: Observed | None = None
    backbind.reset()
    for name in ("eager", "captured", "plan held", "enabled", "graph", "graph held", "eager again"):
        with _way(name, expected, problems) as enter:
            # One line for all runs, so that even tracebacks are the same.
            observed = observe(scenario, Run(name, enter))
        if reference is None:
            reference = observed
        for part in ("value", "log", "warned", "modes_afterwards"):
            found = differences(getattr(reference, part), getattr(observed, part), part)
            problems += [f"{name}: {text}" for text in found]
    if problems:
        raise AssertionError("not as the engine does it:\n  " + "\n  ".join(problems))


@contextlib.contextmanager
def _way(
    name: str, expected: Expected, problems: list[str]
) -> Iterator[Callable[[], contextlib.AbstractContextManager[object]]]:
    """How a run enters its backwards; afterwards, whether its session tells what was expected."""
    if name == "eager":
        # Captures that came before leave the engine's entry taken; here it is as in a process that never captured.
        inspect.unwrap(torch._C._dynamo.compiled_autograd.set_autograd_compiler)(None, False)
    if name.startswith("eager"):
        before = backbind.stats()
        yield contextlib.nullcontext
        if backbind.stats() != before:
            problems.append(f"{name}: something was captured outside every context")
        return
    if name == "enabled":
        session = backbind.enable()
        try:
            yield contextlib.nullcontext
        finally:
            backbind.disable()
        if expected.captures and session.stats.captures + session.stats.replays == 0:
            problems.append("enabled: no backward was captured")
        return
    context = backbind.capture(backend="graph" if name.startswith("graph") else "native")
    yield lambda: context
    stats = context.session.stats
    if tuple(stats.fallback_reasons) != expected.fallbacks:
        problems.append(
            f"{name}: expected fallbacks {expected.fallbacks}, got {dict(stats.fallback_reasons)}"
        )
    if name == "captured" and expected.captures not in (None, stats.captures > 0):
        problems.append(f"captured: {stats.captures} captures")
    if (
        name in ("plan held", "graph", "graph held")
        and expected.captures
        and (stats.captures == 0) != expected.held
    ):
        problems.append(
            f"{name}: {stats.captures} captures, {stats.replays} replays, because of {dict(stats.recapture_reasons)}"
        )
