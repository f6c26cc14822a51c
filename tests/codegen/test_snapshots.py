"""What is generated for a few nodes that have between them every kind: kept whole, in files that editors
colour.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation
from syrupy.types import SerializedData, SnapshotIndex

from codegen.model.node import Mode, Model, NodeSpec
from codegen.model.saved_types import SAVED_TYPES
from tools.regen_support.only import excerpts, reference_entry
from tools.regen_support.outcome import EQUAL, Outcome

REVIEW = (
    "Read the difference: is each line what the change was meant to do? If so, accept it with",
    "  python -m pytest tests/codegen/test_snapshots.py --snapshot-update",
)

NODES = {
    "SinBackward0": "one input, one output, inline",
    "AminmaxBackward0": "several outputs",
    "CatBackward0": "a list of tensors gets gradients; lists of lists are saved",
    "BlockDiagBackward0": "lists of lists of integers",
    "ConvolutionBackward0": "one formula for several inputs; an optional argument's sizes",
    "ExpandBackward0": "symbolic sizes",
    "ExpandBackward0_copy": "derived for the copying form of a view",
    "DivBackward2": "an optional string",
    "GeluBackward0": "a string",
    "IndexBackward0": "tensor options and a list of optional tensors",
    "ForeachExpBackward0": "foreach, inline",
    "ForeachDivBackward1ScalarList": "foreach, a helper of ours",
    "ForeachLog1PBackward0": "foreach, delegate",
    "AddmmBackward0": "helpers of ours; a step that makes views",
    "SumBackwardAutogradNestedTensor1": "an entry for a dispatch key of its own",
    "CdistBackwardBackward0": "not implemented",
    "AsStridedBackward0": "a tensor's geometry, an optional symbolic integer",
    "AvgPool2DBackwardBackward0": "type and size of a tensor",
    "BatchNormWithUpdateBackward0": "asks whether variables are retained",
}


class _ReviewedFile(SingleFileSnapshotExtension):
    """One file a node; a difference is shown as a unified diff."""

    _write_mode = WriteMode.TEXT

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        # One snapshot of each kind for a test, so its number says nothing.
        del index
        return test_location.snapshot_name

    def diff_lines(self, serialized_data: SerializedData, snapshot_data: SerializedData) -> Iterator[str]:
        old, new = str(snapshot_data).splitlines(), str(serialized_data).splitlines()
        yield from difflib.unified_diff(old, new, "accepted", "generated now", lineterm="")


class _Cpp(_ReviewedFile):
    file_extension = "cpp"


class _Stub(_ReviewedFile):
    file_extension = "pyi"


class _Record(_ReviewedFile):
    file_extension = "py"


class _Reference(_ReviewedFile):
    file_extension = "md"


@pytest.fixture(scope="module")
def outcome(texts: dict[str, str]) -> Outcome:
    return Outcome("2.13.0", Path("generated"), tuple(texts), [], EQUAL, texts=texts)


@pytest.mark.parametrize("node", NODES)
def test_node(node: str, outcome: Outcome, snapshot: SnapshotAssertion) -> None:
    parts = [*excerpts(outcome, node), reference_entry(outcome, node)]
    failures = []
    for part, extension in zip(parts, (_Cpp, _Stub, _Record, _Reference), strict=True):
        accepted = snapshot.use_extension(extension)
        if f"{part.text}\n" != accepted:
            failures += [f"{part.path}:", *accepted.get_assert_diff()]
    # The text of an assertion would be cut after a few lines.
    if failures:
        pytest.fail("\n".join([*failures, "", *REVIEW]), pytrace=False)


def has(node: NodeSpec, word: str) -> bool:
    return any(formula.parsed.uses(word) for formula in node.formulas)


KINDS: dict[str, Callable[[NodeSpec], bool]] = {
    "inline entry": lambda node: node.origin == "entry" and node.choice.mode is Mode.INLINE,
    "delegate entry": lambda node: node.origin == "entry" and node.choice.mode is Mode.DELEGATE,
    "inline foreach": lambda node: node.origin == "foreach" and node.choice.mode is Mode.INLINE,
    "delegate foreach": lambda node: node.origin == "foreach" and node.choice.mode is Mode.DELEGATE,
    "view_copy": lambda node: node.origin == "view_copy",
    "dispatch key": lambda node: node.dispatch_key != "Default",
    "several outputs": lambda node: len(node.outputs) > 1,
    "list of outputs": lambda node: any(output.is_list for output in node.outputs),
    "list of inputs": lambda node: any(one.is_list for one in node.inputs),
    "formula for several inputs": lambda node: any(len(formula.inputs) > 1 for formula in node.formulas),
    "retain_variables": lambda node: has(node, "retain_variables"),
    "grad_input_mask": lambda node: has(node, "grad_input_mask"),
    "not implemented": lambda node: any("not_implemented" in formula.written for formula in node.formulas),
}


def test_the_nodes_cover_every_kind(model: Model) -> None:
    chosen = [node for node in model.nodes if node.name in NODES]
    assert len(chosen) == len(NODES)
    assert [kind for kind, applies in KINDS.items() if not any(map(applies, chosen))] == []


def test_the_nodes_cover_the_types(model: Model) -> None:
    """Rows that have a way of their own to be packed; plain and optional numbers are alike."""
    covered = {saved.type.key for node in model.nodes if node.name in NODES for saved in node.saved}
    alike = {"layout", "optional_boolean", "optional_floating", "optional_scalar", "scalar"}
    assert {row.key for row in SAVED_TYPES} - covered <= alike
