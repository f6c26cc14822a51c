"""Why a file is rewritten: each kind of reason, as a whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codegen.emit.file_header import MARK, comment_header, fingerprint
from codegen.output import MANIFEST, Change, Kind
from tools.regen_support.explain import explain
from tools.regen_support.options import ROOT

MUL = {"schema": "s", "mode": "inline", "reason": "r", "formula_hash": "1", "shard": "nodes_0"}
TEMPLATE = str(ROOT / "templates" / "cpp" / "node.cpp.j2")


def manifest(torch: str = "2.13.0", **nodes: dict[str, str]) -> str:
    return json.dumps({"torch": torch, "nodes": nodes})


def source(body: str, version: str = "2.13.0") -> str:
    text = f"{MARK}\n{body}\n"
    header = comment_header(
        "//", f"derivatives.yaml of torch {version}", "cpp/nodes.cpp.j2", fingerprint(text)
    )
    return text.replace(MARK, header)


def reasons_for(old: str, new: str, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The reasons for a shard, where the manifest goes from ``before`` to ``after``."""
    changes = [Change("cpp/nodes_0.cpp", Kind.STALE, old, new)]
    if before != after:
        changes.append(Change(MANIFEST, Kind.STALE, manifest(**before), manifest(**after)))
    return explain(changes, [])["cpp/nodes_0.cpp"]


@pytest.mark.parametrize(
    "before, after, reason",
    [
        ({}, {"MulBackward0": MUL}, "node MulBackward0 was added"),
        ({"MulBackward0": MUL}, {}, "node MulBackward0 was removed"),
        (
            {"MulBackward0": MUL},
            {"MulBackward0": {**MUL, "formula_hash": "2"}},
            "a formula of MulBackward0 changed",
        ),
        (
            {"MulBackward0": MUL},
            {"MulBackward0": {**MUL, "schema": "t", "formula_hash": "2"}},
            "saved values or inputs of MulBackward0 changed",
        ),
        (
            {"MulBackward0": MUL},
            {"MulBackward0": {**MUL, "mode": "delegate", "reason": "'f' is not exported"}},
            "MulBackward0 became delegate ('f' is not exported)",
        ),
        (
            {"MulBackward0": MUL},
            {"MulBackward0": {**MUL, "shard": "nodes_1"}},
            "shard of MulBackward0 changed",
        ),
    ],
)
def test_what_happened_to_a_node(before: dict[str, Any], after: dict[str, Any], reason: str) -> None:
    old, new = (
        source("// ==== MulBackward0\nx" if "MulBackward0" in side else "") for side in (before, after)
    )
    if old == new:
        new = source("// ==== MulBackward0\ny")
    assert reasons_for(old, new, before, after) == [reason]


def test_a_node_whose_part_of_the_file_is_as_before_is_no_reason() -> None:
    before = {"AbsBackward0": MUL, "MulBackward0": MUL}
    after = {name: {**MUL, "formula_hash": "2"} for name in before}
    old = source("// ==== AbsBackward0\nsame\n// ==== MulBackward0\nold")
    new = source("// ==== AbsBackward0\nsame\n// ==== MulBackward0\nnew")
    assert reasons_for(old, new, before, after) == ["a formula of MulBackward0 changed"]


def test_many_nodes_are_counted() -> None:
    before = {f"Op{number}Backward0": MUL for number in range(9)}
    after = {name: {**MUL, "formula_hash": "2"} for name in before}
    old, new = (source("\n".join(f"// {name} {side}" for name in before)) for side in ("old", "new"))
    assert reasons_for(old, new, before, after) == [
        *(f"a formula of Op{number}Backward0 changed" for number in range(5)),
        "and 4 more of this kind",
    ]


@pytest.mark.parametrize(
    "change, changed_inputs, reasons",
    [
        (Change("x.cpp", Kind.MISSING, "", "a"), None, ["it does not exist"]),
        (Change("x.cpp", Kind.SUPERFLUOUS, "a", ""), None, ["no rule makes it any more"]),
        (Change("x.cpp", Kind.STALE, source("a") + "b", source("a")), [], ["it was edited by hand"]),
        (Change("x.cpp", Kind.STALE, source("a", "2.12.0"), source("a")), [], ["it was for torch 2.12.0"]),
        (
            Change("x.cpp", Kind.STALE, source("a"), source("b")),
            [TEMPLATE],
            ["the template templates/cpp/node.cpp.j2 changed"],
        ),
        (
            Change("x.cpp", Kind.STALE, source("a"), source("b")),
            [str(ROOT / "templates" / "python" / "namespace.pyi.j2"), str(ROOT / "codegen" / "names.py")],
            ["the generator's codegen/names.py changed"],
        ),
        (
            Change("x.cpp", Kind.STALE, source("a"), source("b")),
            [
                "/site-packages/torchgen/packaged/autograd/derivatives.yaml",
                "/somewhere/jinja2/__init__.py",
            ],
            ["torchgen/packaged/autograd/derivatives.yaml changed", "__init__.py changed"],
        ),
        (
            Change("x.cpp", Kind.STALE, source("a"), source("b")),
            None,
            ["its text differs; no earlier run is on record that would tell why"],
        ),
        (
            Change("x.cpp", Kind.STALE, source("a"), source("b")),
            [],
            [
                "its text differs, though no input changed since the recorded run: "
                "another version took its place"
            ],
        ),
        (
            Change(MANIFEST, Kind.STALE, manifest("2.12.0"), manifest("2.13.0")),
            [],
            ["it was for torch 2.12.0"],
        ),
        (
            Change(MANIFEST, Kind.STALE, "{", manifest()),
            None,
            ["its text differs; no earlier run is on record that would tell why"],
        ),
    ],
)
def test_reasons_that_name_no_node(
    change: Change, changed_inputs: list[str] | None, reasons: list[str]
) -> None:
    assert explain([change], changed_inputs) == {change.path: reasons}
