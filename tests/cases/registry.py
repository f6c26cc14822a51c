"""What a case is, and the list of all cases.

A case is a function that gets ``run_backward`` and returns what it saw. It calls everything that runs a backward
through ``run_backward``, which captures it or does not::

    @case(report=PYTORCH + "issues/9391")
    def inplace_on_saved_raises(run_backward: RunBackward) -> Results:
        \"\"\"An output needed for backward was overwritten; right: a RuntimeError, not a wrong gradient.\"\"\"
        ...

A case's name is its function's, its kind that of its module.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

T = TypeVar("T")

PYTORCH = "https://github.com/pytorch/pytorch/"

KINDS = (
    "accumulation",
    "anomaly",
    "checkpointing",
    "compiled_forwards",
    "cpp_functions",
    "custom_functions",
    "custom_function_errors",
    "custom_operators",
    "dtypes",
    "dynamic_shapes",
    "errors",
    "hooks",
    "hooks_changing",
    "hooks_on_nodes",
    "hooks_on_modules",
    "lifetimes",
    "nested_and_subclasses",
    "higher_order",
    "saved_tensors",
    "selected_gradients",
    "sparse",
    "surroundings",
    "threads",
    "transforms",
    "undefined",
    "views",
)
"""The modules in which cases are."""

Results: TypeAlias = dict[str, object]
"""What a case saw, by name: tensors, numbers, texts, and lists, tuples and dicts of them."""


class RunBackward(Protocol):
    """Calls what runs a backward, and returns or raises what that does."""

    def __call__(self, action: Callable[[], T], /) -> T: ...


Program: TypeAlias = Callable[[RunBackward], Results]


@dataclass(frozen=True)
class Case:
    """One program, and what is known of it."""

    name: str
    """``"hook-order-leaf"``."""
    kind: str
    """``"hooks"``."""
    about: str
    """What went wrong in the report, and what is right."""
    program: Program
    report: str | None
    """The address of the public report; None where the case only is of the kind of others."""
    max_captures: int | None
    """How many captures are needed at most; None where it is not judged."""
    needs_extension: bool
    """Whether it calls operators of extension.cpp."""
    differs: str | None
    """Why a captured backward cannot be as eager here; None where it is."""


_CASES: dict[str, Case] = {}


def case(
    *,
    report: str | None = None,
    max_captures: int | None = None,
    needs_extension: bool = False,
    differs: str | None = None,
) -> Callable[[Program], Program]:
    """Puts a function on the list of cases."""

    def put(program: Program) -> Program:
        name = program.__name__.replace("_", "-")
        if name in _CASES:
            raise ValueError(f"two cases are called {name}")
        _CASES[name] = Case(
            name=name,
            kind=program.__module__.rpartition(".")[2],
            about=" ".join((inspect.getdoc(program) or "").split()),
            program=program,
            report=report,
            max_captures=max_captures,
            needs_extension=needs_extension,
            differs=differs,
        )
        return program

    return put


def all_cases() -> Mapping[str, Case]:
    """Every case by its name."""
    for kind in KINDS:
        importlib.import_module(f"tests.cases.{kind}")
    return _CASES
