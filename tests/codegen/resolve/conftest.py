"""What the resolver makes of the derivatives of a torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from codegen.check import check_entries
from codegen.parse.report import Report
from codegen.parse.yaml_source import parse_entries
from codegen.parse.yaml_tree import read_source
from codegen.resolve import resolve_derivatives
from codegen.resolve.records import Derivatives
from codegen.torch_install.cache import Cache
from codegen.torch_install.locate import TorchInstall
from codegen.torch_library import load_names

Resolve = Callable[[TorchInstall], Derivatives]


@pytest.fixture(scope="session")
def resolve(kept_facts: Cache) -> Resolve:
    """Resolve the whole file of a torch."""
    found: dict[TorchInstall, Derivatives] = {}

    def run(install: TorchInstall) -> Derivatives:
        if install not in found:
            report = Report()
            source = read_source(install.derivatives_yaml, "derivatives.yaml", report)
            assert source is not None
            operators, vocabulary = load_names(install, kept_facts)
            judged = check_entries(parse_entries(source, report), operators, vocabulary, report)
            found[install] = resolve_derivatives(
                [entry.formulas for entry in judged],
                [operator.schema for operator in operators.items],
                report,
            )
            assert report.errors == ()
        return found[install]

    return run


@pytest.fixture(scope="session")
def resolved(resolve: Resolve, installed_torch: TorchInstall) -> Derivatives:
    """The derivatives of the installed torch."""
    return resolve(installed_torch)
