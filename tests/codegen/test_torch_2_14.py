"""The next torch, without building: its own YAML and headers go through the same generator, unchanged."""

from __future__ import annotations

import json

import pytest

from codegen.model.difference import compare_models
from codegen.model.header_check import differences
from codegen.model.node import Mode, Model
from codegen.pipeline import Settings, Timings, load_model, render
from codegen.torch_install.cache import Cache
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.node_structs import NodeStructsRun

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def next_model(torch_2_14: TorchInstall, kept_facts: Cache) -> Model:
    return load_model(torch_2_14, Settings(), Timings(), kept_facts)


def test_every_struct_of_its_header_is_modelled(
    next_model: Model, torch_2_14: TorchInstall, kept_facts: Cache
) -> None:
    with NodeStructsRun(torch_2_14, kept_facts) as run:
        structs = run.result()
    assert list(differences(next_model, structs)) == []
    assert (next_model.library.version, len(next_model.nodes), len(structs)) == ("2.14.1", 712, 712)


def test_it_generates_every_output(next_model: Model, texts: dict[str, str]) -> None:
    made = render(next_model, Settings(), Timings())
    # A torch may have nodes of an area that another lacks, so the reference may differ by a page.
    assert {path for path in made if "reference/" not in path} == {
        path for path in texts if "reference/" not in path
    }
    manifest = json.loads(made["manifest.json"])
    assert manifest["torch"] == "2.14.1"
    assert list(manifest["nodes"]) == [node.name for node in next_model.nodes]
    for path, text in made.items():
        if path != "manifest.json":
            assert "derivatives.yaml of torch 2.14.1; do not edit." in text.split("\n", 1)[0], path


def test_it_is_inline_where_its_library_lets_it(next_model: Model, model: Model) -> None:
    counts = [sum(node.choice.mode is Mode.INLINE for node in one.nodes) for one in (model, next_model)]
    # What links is a fact of each wheel; if nearly everything were a delegate, it was not found.
    assert abs(counts[0] - counts[1]) < 40


def test_what_changed_since_the_reference_version(model: Model, next_model: Model) -> None:
    difference = compare_models(model, next_model)
    assert [node.name for node in difference.added] == ["LinalgMatrixSqrthBackward0", "LinalgPolarBackward0"]
    assert [node.name for node in difference.removed] == ["CholeskyBackward0"]
    changed = {node.name: node.changes for node in difference.changed}
    assert [vars(change) for change in changed["Log10Backward0"]] == [
        {
            "kind": "formula",
            "subject": "self",
            "old": "grad / (self.conj() * 2.3025850929940456)",
            "new": "grad / (self.conj() * M_LN10)",
        }
    ]
    assert ("saved value", "eps", None) in {
        (change.kind, change.subject, change.new) for change in changed["NativeGroupNormBackward0"]
    }
