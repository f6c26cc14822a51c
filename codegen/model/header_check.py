"""Holds the model against the node structs of the installed header: every difference names both sides.

The model comes from the YAML, the structs are what torch was compiled with. Code that fills or reads a node's
fields is right only where the two agree, so a difference is an error, never a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .. import names
from ..torch_install.node_structs import NodeStruct
from .node import Model, NodeSpec

BASES = ("TraceableFunction", "Node")
"""Bases whose fields and constructors the delegate knows."""

RETAIN_VARIABLES = "retain_variables"
"""The engine's flag, a field of nodes whose formulas ask for it."""


class HeaderMismatchError(Exception):
    """Model and header differ; the message lists every difference."""


def require_equal(model: Model, structs: Mapping[str, NodeStruct], header: str) -> None:
    """Compare, and raise with all differences in one message.

    Raises:
        HeaderMismatchError: there is at least one.
    """
    found = list(differences(model, structs))
    if not found:
        return
    library = model.library
    count = "1 difference" if len(found) == 1 else f"{len(found)} differences"
    raise HeaderMismatchError(
        "\n".join(
            [
                f"{count} between {library.yaml_name} and {header} of {library.name} {library.version}:",
                *(f"  {line}" for line in found),
                "hint: torch was compiled with the header. An edited formula may read only what its node saved; "
                "where none was edited the model is wrong: types stand in codegen/model/saved_types.py, names in "
                "codegen/names.py",
            ]
        )
    )


def differences(model: Model, structs: Mapping[str, NodeStruct]) -> Iterator[str]:
    """One line for each difference, by node."""
    nodes = {node.name: node for node in model.nodes}
    for name in sorted(nodes.keys() | structs.keys()):
        if name not in structs:
            yield (
                f"{name}: the header has no such struct, the model makes it from "
                f"'{nodes[name].operator}' ({model.library.yaml_name}:{nodes[name].line})"
            )
        elif name not in nodes:
            yield f"{name}: the header has this struct, the model has no such node"
        else:
            yield from _node_differences(nodes[name], structs[name])


def expected_fields(node: NodeSpec) -> dict[str, str]:
    """The fields of the node struct, type by name, in order."""
    fields = {}
    if any(formula.parsed.uses(RETAIN_VARIABLES) for formula in node.formulas):
        fields[RETAIN_VARIABLES] = "bool"
    for saved in node.saved:
        fields[saved.field] = saved.type.member
        if saved.type.has_released_flag:
            fields[names.released_flag(saved.name)] = "bool"
    return fields


def _node_differences(node: NodeSpec, struct: NodeStruct) -> Iterator[str]:
    if struct.base not in BASES:
        wanted = " or ".join(f"'{base}'" for base in BASES)
        yield f"{node.name}: the header says that its base is '{struct.base}', the model expects {wanted}"
    expected = expected_fields(node)
    for field, written in struct.fields.items():
        if field not in expected:
            yield f"{node.name}.{field}: the header says '{written}', the model has no such field"
        elif expected[field] != written:
            yield f"{node.name}.{field}: the header says '{written}', the model says '{expected[field]}'"
    for field, kind in expected.items():
        if field not in struct.fields:
            yield f"{node.name}.{field}: the header has no such field, the model says '{kind}'"
    in_header, in_model = list(struct.fields), list(expected)
    if in_header != in_model and sorted(in_header) == sorted(in_model):
        orders = ", ".join(in_header), ", ".join(in_model)
        yield f"{node.name}: the header orders its fields {orders[0]}; the model {orders[1]}"
