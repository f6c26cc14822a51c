"""Torch's own derivatives pass without an error, and what is noticed about them is what torch itself does."""

from __future__ import annotations

import pytest

from codegen.__main__ import main
from codegen.check import check_entries
from codegen.parse.report import Report
from codegen.parse.yaml_source import parse_entries
from codegen.parse.yaml_tree import read_source
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.operators import Operators, load_operators
from codegen.torch_install.vocabulary import Vocabulary, load_vocabulary

from ..resolve.torchgen_oracle import nodes_by_torchgen


def judge_stock(install: TorchInstall, operators: Operators, vocabulary: Vocabulary) -> Report:
    report = Report()
    source = read_source(install.derivatives_yaml, "derivatives.yaml", report)
    assert source is not None
    check_entries(parse_entries(source, report), operators, vocabulary, report)
    return report


def test_installed_derivatives_have_no_errors(
    installed_torch: TorchInstall, operators: Operators, vocabulary: Vocabulary
) -> None:
    report = judge_stock(installed_torch, operators, vocabulary)
    assert [item.render() for item in report.errors] == []


def test_notices_name_the_entries_that_torch_makes_no_node_for(
    installed_torch: TorchInstall, operators: Operators, vocabulary: Vocabulary
) -> None:
    report = judge_stock(installed_torch, operators, vocabulary)
    noticed = {item.span.text for item in report.notices if "gets no backward node" in item.message}
    _, without_node = nodes_by_torchgen(installed_torch)
    assert noticed == {schema for schema, _ in without_node}


@pytest.mark.slow
def test_next_torch_has_no_errors(torch_2_14: TorchInstall, capsys: pytest.CaptureFixture[str]) -> None:
    operators = load_operators(torch_2_14)
    report = judge_stock(torch_2_14, operators, load_vocabulary(torch_2_14, operators))
    assert [item.render() for item in report.errors] == []
    code = main(
        ["check", str(torch_2_14.derivatives_yaml), "--torch", str(torch_2_14.root.parent), "--quiet"]
    )
    assert (code, capsys.readouterr().out) == (0, f"{torch_2_14.derivatives_yaml}: no errors\n")
