"""From an installed torch to the texts of all output files: read, check, model, emit. Nothing is written
here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from .check import JudgedEntry, check_compiled, check_entries
from .emit.registry import emit_all
from .emit.rendering import TEMPLATES, make_renderer
from .model.build import build_model
from .model.link_facts import NOTHING_LINKS, LinkFacts
from .model.node import Mode, Model
from .parse.report import Report
from .parse.yaml_source import parse_entries
from .parse.yaml_tree import read_source
from .preconditions import add_preconditions
from .resolve import resolve_derivatives
from .torch_install.cache import Cache
from .torch_install.compiled_formulas import hash_of_derivatives, is_edited, load_compiled_formulas
from .torch_install.locate import TorchInstall
from .torch_install.operators import Operators
from .torch_library import find_link_facts, load_names, torch_library


class BadDerivativesError(Exception):
    """The derivatives have errors; the message is the whole report."""


@dataclass(frozen=True)
class Settings:
    """What can be asked of a run."""

    forced_mode: Mode | None = None
    """DELEGATE: no inline code at all. None or INLINE: inline wherever it is possible."""
    line_directives: bool = True
    """Whether formulas carry ``#line``, so that compiler errors point into the YAML."""
    templates: Path = TEMPLATES
    must_take_effect: bool = True
    """Whether a change that could not take effect is an error; not where derivatives are only compared."""


@dataclass
class Timings:
    """Seconds that each phase took, in order."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time spent inside under ``name``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def load_model(
    install: TorchInstall, settings: Settings, timings: Timings, cache: Cache | None = None
) -> Model:
    """Read and check the derivatives of ``install``, which need not be the torch of this Python.

    Raises:
        BadDerivativesError: the YAML has errors.
    """
    cache = cache or Cache()
    report = Report()
    delegates_only = settings.forced_mode is Mode.DELEGATE
    with timings.phase("parse"):
        source = read_source(install.derivatives_yaml, install.derivatives_yaml.name, report)
        entries = parse_entries(source, report) if source is not None else ()
    with timings.phase("vocabulary"):
        operators, vocabulary = load_names(install, cache)
    with timings.phase("check"):
        judged = check_entries(entries, operators, vocabulary, report)
    _raise_errors(report)
    with timings.phase("exports"):
        # Where nothing is compiled inline, nobody asks what links.
        facts = NOTHING_LINKS if delegates_only else find_link_facts(install, vocabulary, cache)
    changes = Report()
    if settings.must_take_effect:
        with timings.phase("check"):
            _check_changes(install, judged, operators, facts, settings, changes)
        _raise_errors(changes)
    with timings.phase("resolve"):
        derivatives = resolve_derivatives(
            tuple(entry.formulas for entry in judged),
            (operator.schema for operator in operators.items),
            report,
        )
    _raise_errors(report)
    with timings.phase("model"):
        library = torch_library(install, operators, facts)
        model = build_model(library, derivatives, settings.forced_mode)
        table = read_source(library.preconditions, library.preconditions_name, report)
        if table is not None:
            model = add_preconditions(model, table, report)
    _raise_errors(report)
    return replace(
        model,
        yaml_hash=hash_of_derivatives(install),
        notices=tuple(notice.render() for notice in changes.notices),
    )


def _raise_errors(report: Report) -> None:
    if report.has_errors:
        report.drop_notices()
        raise BadDerivativesError(report.render())


def _check_changes(
    install: TorchInstall,
    judged: tuple[JudgedEntry, ...],
    operators: Operators,
    facts: LinkFacts,
    settings: Settings,
    report: Report,
) -> None:
    """Hold the derivatives against what torch was compiled with."""
    compiled = load_compiled_formulas(install)
    if compiled is not None:
        nothing = settings.forced_mode is Mode.DELEGATE
        check_compiled(judged, operators, compiled, lambda: facts, report, compiles_nothing=nothing)
    elif is_edited(install) and judged:
        report.error(
            judged[0].raw.name.span,
            f"this file was edited, and what torch {install.version} was compiled with is not known here",
            "restore it, or record that first: tools/record_formulas.py, with the torch as it was installed",
        )


def render(model: Model, settings: Settings, timings: Timings) -> dict[str, str]:
    """The texts of every output file, by path."""
    with timings.phase("emit"):
        return emit_all(make_renderer(model, settings.templates, settings.line_directives))
