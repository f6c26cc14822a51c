"""What torchgen, the generator that ships in every torch wheel, makes of the derivatives of its torch.

The resolver of ``codegen`` is held against it. A process can hold the torchgen of one torch only, so it works in one of
its own: run as a script, this file prints the nodes as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from codegen.torch_install.locate import TorchInstall

Nodes = dict[str, dict[str, Any]]


@cache
def nodes_by_torchgen(install: TorchInstall) -> tuple[Nodes, list[list[str]]]:
    """Every node by name with everything that a resolved node says, and the entries without one with the reason."""
    paths = (install.derivatives_yaml, install.native_functions_yaml, install.tags_yaml)
    run = subprocess.run(
        [sys.executable, __file__, *map(str, paths)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(install.torchgen.parent), *sys.path))},
        check=True,
        capture_output=True,
        text=True,
    )
    nodes, skipped = json.loads(run.stdout)
    return nodes, skipped


def _print_nodes(derivatives: str, native_functions: str, tags: str) -> None:
    from torchgen.api.autograd import match_differentiability_info
    from torchgen.gen import parse_native_yaml
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    infos, _keys = load_derivatives(derivatives, native_functions, tags)
    # Matching adds the operators over lists to the table, so what the YAML says is noted before.
    entries = _Entries(infos)
    functions = parse_native_yaml(native_functions, tags).native_functions
    nodes: Nodes = {}
    for function in match_differentiability_info(functions, infos):
        for key, info in (function.info or {}).items():
            if info.op is not None and info.op not in nodes:
                nodes[info.op] = _node(function, key, info, entries)
    print(json.dumps([nodes, entries.without_node]))


class _Entries:
    """Finds the YAML entry behind a node that torchgen derived from another one."""

    def __init__(self, infos: Mapping[Any, Mapping[str, Any]]) -> None:
        self._schemas = tuple(infos)
        every = [info for per_key in infos.values() for info in per_key.values()]
        self._known = {id(info) for info in every}
        # A copying form shares the list of derivatives of the view, which comes first.
        self._first_with: dict[int, Any] = {}
        for info in every:
            self._first_with.setdefault(id(info.derivatives), info)
        self.without_node = [
            [str(info.func.func), _why_no_node(info)]
            for info in every
            if info.op is None and self._is_written(info)
        ]

    def _is_written(self, info: Any) -> bool:
        return self._first_with.get(id(info.derivatives)) is info

    def origin_of(self, function: Any, info: Any) -> tuple[str, str]:
        """The kind of origin and the schema of the entry."""
        from torchgen.api.autograd import is_reference_for_foreach

        if self._is_written(info):
            return "entry", str(info.func.func)
        if id(info) in self._known:
            return "view_copy", str(self._first_with[id(info.derivatives)].func.func)
        found = (schema for schema in self._schemas if is_reference_for_foreach(function.func, schema))
        return "foreach", str(next(found))


def _why_no_node(info: Any) -> str:
    if info.non_differentiable_arg_names:
        return "every argument is marked non_differentiable"
    return "no gradient formula, only the differentiability of its outputs or a forward formula"


def _node(function: Any, key: str, info: Any, entries: _Entries) -> dict[str, Any]:
    origin, entry = entries.origin_of(function, info)
    if origin != "foreach":
        # The node is met first with whichever form of the operator the file has first, out= and in place too.
        function = replace(function, func=info.func)
    positions = [binding.name for binding in info.args_with_derivatives]
    derivatives = sorted(info.derivatives, key=lambda d: min(map(positions.index, d.var_names)))
    return {
        "operator": str(function.func.func.name),
        "schema": str(function.func.func),
        "dispatch_key": key,
        "origin": origin,
        "entry": entry,
        "inputs": [[one.name, _is_tensor_list(one.type)] for one in info.args_with_derivatives],
        "outputs": _outputs(function, key),
        "named_gradients": list(info.available_named_gradients),
        "formulas": [[list(one.var_names), one_line(one.formula)] for one in derivatives],
        "saved": [
            *_saved(info.all_saved_inputs, is_output=False),
            *_saved(info.all_saved_outputs, is_output=True),
        ],
    }


def _outputs(function: Any, key: str) -> list[list[Any]]:
    from torchgen.api.autograd import gen_differentiable_outputs
    from torchgen.context import native_function_manager

    with native_function_manager(function.func):
        outputs = gen_differentiable_outputs(function, key)
    # What an operator returns that changes its first argument has the name of that argument here, in formulas 'result'.
    inplace = function.func.func.kind().name == "inplace"
    return [["result" if inplace else one.name, str(one.type) != "Tensor"] for one in outputs]


def _is_tensor_list(cpp_type: str) -> bool:
    return cpp_type in ("at::TensorList", "const at::ITensorListRef &")


def _saved(attributes: Sequence[Any], *, is_output: bool) -> list[list[Any]]:
    """Node structs list their fields by name, inputs before outputs."""
    found: dict[str, list[Any]] = {}
    for one in attributes:
        name = getattr(one.nctype.name, "name", one.nctype.name)
        cpp_type = one.nctype.type.cpp_type()
        if is_output and cpp_type == "at::TensorList":
            # So in derived nodes; in those of entries, a result that is a list is a vector.
            cpp_type = "::std::vector<at::Tensor>"
        found.setdefault(name, [name, cpp_type, one.expr, is_output])
    return [found[name] for name in sorted(found)]


def one_line(text: str) -> str:
    """A formula without its layout."""
    return " ".join(text.split())


if __name__ == "__main__":
    _print_nodes(*sys.argv[1:])
