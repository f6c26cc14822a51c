"""What changed in the derivatives between two torch versions: the difference of two models, node by node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .node import Model, NodeSpec, SavedValue


@dataclass(frozen=True)
class Change:
    """One thing about a node that is not as before."""

    kind: str
    """``forward``, ``inputs``, ``outputs``, ``formula`` or ``saved value``."""
    subject: str
    """What it is the formula or the saved value of: ``self``; empty if a node has only one such thing."""
    old: str | None
    """None: it is new."""
    new: str | None
    """None: it is gone."""


@dataclass(frozen=True)
class NodeDifference:
    """A node that both models have."""

    name: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Difference:
    """Everything that differs from ``old`` to ``new``."""

    old_version: str
    new_version: str
    added: tuple[NodeSpec, ...]
    removed: tuple[NodeSpec, ...]
    changed: tuple[NodeDifference, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data in a fixed order."""
        return {
            "old": self.old_version,
            "new": self.new_version,
            "added": [_entry(node) for node in self.added],
            "removed": [_entry(node) for node in self.removed],
            "changed": [
                {"node": node.name, "changes": [vars(change) for change in node.changes]}
                for node in self.changed
            ],
        }


def compare_models(old: Model, new: Model) -> Difference:
    """What to read when torch goes from one version to another; modes do not count, they are ours."""
    before = {node.name: node for node in old.nodes}
    after = {node.name: node for node in new.nodes}
    common = (name for name in sorted(before.keys() & after.keys()))
    compared = (NodeDifference(name, tuple(_changes(before[name], after[name]))) for name in common)
    return Difference(
        old.library.version,
        new.library.version,
        tuple(node for node in new.nodes if node.name not in before),
        tuple(node for node in old.nodes if node.name not in after),
        tuple(node for node in compared if node.changes),
    )


def describe(difference: Difference) -> str:
    """The difference for people: a summary, then each node with what was and what is."""
    formulas = _count(difference, "formula")
    saved = _count(difference, "saved value")
    lines = [
        f"torch {difference.old_version} -> {difference.new_version}: {_nodes(len(difference.added))} added, "
        f"{len(difference.removed)} removed, {formulas} with changed formulas, "
        f"{saved} with changed saved values"
    ]
    for title, nodes in (("added", difference.added), ("removed", difference.removed)):
        for node in nodes:
            lines += ["", f"{title} {node.name}", f"  forward: {node.forward_schema}"]
            lines += [
                f"  {', '.join(formula.inputs)}: {_one_line(formula.written)}" for formula in node.formulas
            ]
    for changed in difference.changed:
        lines += ["", f"changed {changed.name}"]
        for change in changed.changes:
            lines.append(f"  {change.kind} {change.subject}".rstrip())
            lines += [f"    - {change.old}"] if change.old is not None else []
            lines += [f"    + {change.new}"] if change.new is not None else []
    return "\n".join(lines) + "\n"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _count(difference: Difference, kind: str) -> int:
    return sum(any(change.kind == kind for change in node.changes) for node in difference.changed)


def _entry(node: NodeSpec) -> dict[str, str]:
    return {"node": node.name, "operator": node.operator, "forward": node.forward_schema}


def _changes(old: NodeSpec, new: NodeSpec) -> Iterator[Change]:
    yield from _compared("forward", {"": _forward(old)}, {"": _forward(new)})
    for kind, before, after in (("inputs", old.inputs, new.inputs), ("outputs", old.outputs, new.outputs)):
        # A list and a single tensor of the same name are different things to a node.
        texts = [", ".join(one.name + "[]" * one.is_list for one in side) for side in (before, after)]
        yield from _compared(kind, {"": texts[0]}, {"": texts[1]})
    yield from _compared("formula", _formulas(old), _formulas(new))
    yield from _compared("saved value", _saved(old), _saved(new))


def _compared(kind: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    for subject in [*old, *(name for name in new if name not in old)]:
        if old.get(subject) != new.get(subject):
            yield Change(kind, subject, old.get(subject), new.get(subject))


def _forward(node: NodeSpec) -> str:
    return (
        node.forward_schema
        if node.dispatch_key == "Default"
        else f"{node.forward_schema}  [{node.dispatch_key}]"
    )


def _formulas(node: NodeSpec) -> dict[str, str]:
    return {", ".join(formula.inputs): _one_line(formula.written) for formula in node.formulas}


def _saved(node: NodeSpec) -> dict[str, str]:
    return {saved.name: _describe_saved(saved) for saved in node.saved}


def _describe_saved(saved: SavedValue) -> str:
    return f"{saved.type.member} {saved.field} = {_one_line(saved.expression)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
