"""Programs: forwards whose graphs are checked. A source of samples gives one program per operator and dtype."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from tests.oracle.checker import Checker
from tests.oracle.masks import subsets
from tests.oracle.outcome import SEED
from tests.oracle.tally import Disagreement

Forward: TypeAlias = Callable[[], object]
"""Runs a forward and returns its results."""

DTYPES = (torch.float64, torch.float32, torch.complex128)


@dataclass(frozen=True)
class Sample:
    """One set of inputs of a program."""

    forward: Forward
    variations: Callable[[], Iterator[Forward]] = lambda: iter(())
    """The same with other gradients wanted, or in place; run where the plain forward met something new."""


@dataclass(frozen=True)
class Program:
    """One operator in one dtype."""

    source: str
    name: str
    samples: Callable[[], Iterable[Sample]]

    @property
    def identifier(self) -> str:
        return f"{self.source}-{self.name}"


def parameters(programs: list[Program]) -> pytest.MarkDecorator:
    """Parametrises a test over programs."""
    identifiers = [program.identifier for program in programs]
    assert len(set(identifiers)) == len(identifiers), "two programs of one name"
    return pytest.mark.parametrize("program", programs, ids=identifiers)


def by_source(programs: list[Program]) -> Counter[str]:
    """How many programs each source has."""
    return Counter(program.source for program in programs)


def sample_of_call(function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sample:
    """A sample that calls ``function``; its variations leave out every choice of inputs that require grad."""

    def variations() -> Iterator[Forward]:
        leaves, structure = tree_flatten((args, kwargs))
        for wanted in subsets([isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves]):
            if any(wanted):
                chosen = [
                    leaf.detach() if isinstance(leaf, torch.Tensor) and not flag else leaf
                    for leaf, flag in zip(leaves, wanted, strict=True)
                ]
                some_args, some_kwargs = tree_unflatten(chosen, structure)
                yield partial(function, *some_args, **some_kwargs)

    def all_but_the_first() -> Iterator[Forward]:
        return islice(variations(), 1, None)

    return Sample(partial(function, *args, **kwargs), all_but_the_first)


def check_program(checker: Checker, program: Program, limit: int | None = None) -> list[Disagreement]:
    """Check the graphs of a program's samples, or of the first ``limit`` ones."""
    found: list[Disagreement] = []
    torch.manual_seed(SEED)
    with warnings.catch_warnings():
        # What a forward warns of is not what is tested here.
        warnings.simplefilter("ignore")
        for sample in islice(_seeded(program.samples()), limit):
            known = checker.tally.kinds
            found += _check_forward(checker, sample.forward)
            if checker.tally.kinds > known:
                for variation in sample.variations():
                    found += _check_forward(checker, variation)
    return found


def _seeded(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Comparing draws random numbers; samples shall not depend on which comparisons were made between them."""
    state = torch.get_rng_state()
    iterator = iter(samples)
    while True:
        torch.set_rng_state(state)
        sample = next(iterator, None)
        state = torch.get_rng_state()
        if sample is None:
            return
        yield sample


def _check_forward(checker: Checker, forward: Forward) -> list[Disagreement]:
    checker.tally.samples += 1
    try:
        results = forward()
    except Exception:
        # No graph, so nothing to compare: some samples exist to be refused, or not with these inputs requiring grad.
        checker.tally.refused += 1
        return []
    return checker.check(results)
