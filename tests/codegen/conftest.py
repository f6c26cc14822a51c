"""The facts of the installed torch that judging derivatives needs, loaded once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.check import check_entries
from codegen.installed.locate import TorchInstall
from codegen.installed.operators import Operators, load_operators
from codegen.installed.vocabulary import Vocabulary, load_vocabulary
from codegen.parse.report import Report
from codegen.parse.yaml_source import parse_entries
from codegen.parse.yaml_tree import decode_source

CASES = Path(__file__).parent / "cases"

Judge = Callable[[bytes, str], Report]


@pytest.fixture(scope="session")
def operators(installed_torch: TorchInstall) -> Operators:
    return load_operators(installed_torch)


@pytest.fixture(scope="session")
def vocabulary(installed_torch: TorchInstall, operators: Operators) -> Vocabulary:
    return load_vocabulary(installed_torch, operators)


@pytest.fixture(scope="session")
def judge(operators: Operators, vocabulary: Vocabulary) -> Judge:
    """Judge the bytes of a derivatives file under a name."""

    def run(content: bytes, name: str) -> Report:
        report = Report()
        source = decode_source(content, name, report)
        if source is not None:
            check_entries(parse_entries(source, report), operators, vocabulary, report)
        return report

    return run
