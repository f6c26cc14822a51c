"""What ``--only NODE`` prints: the parts of the outputs that are about one node."""

from __future__ import annotations

import json
from dataclasses import dataclass

from codegen import names
from codegen.output import MANIFEST
from codegen.parse.nearest import did_you_mean, did_you_mean_one_of
from tools.regen_support.errors import BadInputError
from tools.regen_support.outcome import Outcome


@dataclass(frozen=True)
class Excerpt:
    """The lines of one output that are about a node."""

    path: str
    text: str


def excerpts(outcome: Outcome, node: str) -> list[Excerpt]:
    """The C++ block, the stub and the record of a node.

    Raises:
        BadInputError: there is no such node; the message has the nearest name.
    """
    nodes: dict[str, dict[str, str]] = json.loads(outcome.text(MANIFEST))["nodes"]
    if node not in nodes:
        raise BadInputError(_unknown(node, list(nodes), outcome.torch_version))
    area = nodes[node]["area"]
    places = (
        # Path, how the first line begins, how the first line after the last begins.
        (f"cpp/{nodes[node]['shard']}.cpp", f"// ==== {node} ", ("// ==== ", "std::span<")),
        (names.area_file(area, ".pyi"), f"class {node}(", ("@type_check_only",)),
        (names.area_file(area, ".py"), f'    "{node}": NodeRecord(', ('    "', "}")),
    )
    return [Excerpt(path, _slice(outcome.text(path), first, end)) for path, first, end in places]


def reference_entry(outcome: Outcome, node: str) -> Excerpt:
    """The entry of a node on its page of the reference."""
    for path in outcome.outputs:
        if path.startswith("reference/"):
            entry = _slice(outcome.text(path), f"## {node}", ("## ",))
            if entry.split("\n", 1)[0] == f"## {node}":
                return Excerpt(path, entry)
    raise LookupError(f"no page of the reference has an entry for '{node}'")


def _slice(text: str, first: str, ends: tuple[str, ...]) -> str:
    """From the line that begins with ``first`` up to the next that begins with one of ``ends``."""
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.startswith(first)), None)
    if start is None:
        return ""
    stop = next(
        (number for number in range(start + 1, len(lines)) if lines[number].startswith(ends)), len(lines)
    )
    return "\n".join(lines[start:stop]).rstrip("\n")


def _unknown(node: str, known: list[str], version: str) -> str:
    message = f"torch {version} has no node '{node}'"
    hint = did_you_mean(node, known)
    if hint is None:
        # People also ask by the operator: mul -> MulBackward0.
        plain = node.replace("_", "").lower()
        begin = [name for name in known if name.lower().startswith(f"{plain}backward")]
        hint = did_you_mean_one_of(begin[:5]) if begin else None
    return message if hint is None else f"{message}\nhint: {hint}"
