"""Every mistake in a table of preconditions with its whole message: each file under cases/ holds a table and, below it,
what is said.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen import pipeline, torch_library
from codegen.model.node import Model
from codegen.parse.report import Report
from codegen.parse.span import SourceFile
from codegen.preconditions import TORCH_TABLE, TORCH_TABLE_NAME, add_preconditions
from codegen.torch_install.cache import Cache
from codegen.torch_install.locate import TorchInstall

MARK = "# expect:\n"
FILES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


def judged(text: str, name: str, model: Model) -> Report:
    report = Report()
    add_preconditions(model, SourceFile(name, text), report)
    return report


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_message(path: Path, model: Model) -> None:
    text, mark, expected = path.read_text().partition(MARK)
    assert mark, f"{path} has no line '{MARK.strip()}'"
    assert judged(text, path.name, model).render() == _uncommented(expected)


def _uncommented(text: str) -> str:
    lines = [line.removeprefix("#").removeprefix(" ") for line in text.splitlines()]
    return "" if lines == ["no findings"] else "\n".join(lines) + "\n"


@pytest.mark.parametrize("text", ["", "# nothing\n", "[]\n"])
def test_an_empty_table_says_nothing(text: str, model: Model) -> None:
    assert judged(text, "empty.yaml", model).render() == ""


def test_the_table_of_torch_fits_it(model: Model) -> None:
    assert judged(TORCH_TABLE.read_text(), TORCH_TABLE_NAME, model).render() == ""


def test_a_table_that_does_not_fit_stops_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed_torch: TorchInstall, kept_facts: Cache
) -> None:
    table = tmp_path / "torch.yaml"
    table.write_text("- operators: [amx]\n")
    monkeypatch.setattr(torch_library, "TORCH_TABLE", table)
    with pytest.raises(pipeline.BadDerivativesError) as raised:
        pipeline.load_model(installed_torch, pipeline.Settings(), pipeline.Timings(), kept_facts)
    assert str(raised.value) == (
        "codegen/preconditions/torch.yaml:1:15: error: no operator 'amx' has derivatives\n"
        "- operators: [amx]\n"
        "              ^~~\n"
        "hint: did you mean 'amax'?\n\n"
        "1 error\n"
    )
