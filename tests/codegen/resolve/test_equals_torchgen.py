"""Every node of a torch, derived ones too, says what torchgen says of it: field by field."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.resolve.records import Derivatives, ResolvedNode
from codegen.torch_install.locate import TorchInstall

from .conftest import Resolve
from .torchgen_oracle import nodes_by_torchgen, one_line


def as_data(node: ResolvedNode) -> dict[str, Any]:
    return {
        "operator": node.schema.full_name,
        "schema": node.schema.text,
        "dispatch_key": node.dispatch_key,
        "origin": node.origin,
        "entry": node.entry.schema.text,
        "inputs": [[one.name, one.is_list] for one in node.inputs],
        "outputs": [[one.name, one.is_list] for one in node.outputs],
        "named_gradients": list(node.named_gradients),
        "formulas": [[list(one.inputs), one_line(one.text)] for one in node.formulas],
        "saved": [[one.name, one.cpp_type, one.expression, one.is_output] for one in node.saved],
    }


def require_equal(derivatives: Derivatives, install: TorchInstall) -> None:
    theirs, skipped = nodes_by_torchgen(install)
    ours = {node.name: as_data(node) for node in derivatives.nodes}
    assert list(ours) == sorted(theirs)
    differences = [
        (name, field, ours[name][field], theirs[name][field])
        for name in ours
        for field in ours[name]
        if ours[name][field] != theirs[name][field]
    ]
    assert differences == []
    assert [[one.entry.schema.text, one.reason] for one in derivatives.skipped] == skipped


def test_every_node_of_the_installed_torch(resolved: Derivatives, installed_torch: TorchInstall) -> None:
    require_equal(resolved, installed_torch)
    assert {node.origin for node in resolved.nodes} == {"entry", "view_copy", "foreach"}


@pytest.mark.slow
def test_every_node_of_the_next_torch(resolve: Resolve, torch_2_14: TorchInstall) -> None:
    require_equal(resolve(torch_2_14), torch_2_14)
