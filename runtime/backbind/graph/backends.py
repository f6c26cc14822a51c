"""What runs captured graphs: the backends, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from backbind import _C
from backbind.graph.captured_graph import build_captured_graph
from backbind.graph.lowering import Lifted, Lowering
from backbind.graph.passes import eliminate_dead_code
from backbind.graph.runner import make_runner

CompileGraph = Callable[[fx.GraphModule], Callable[..., Any]]


def graph_backend(
    compile_graph: CompileGraph, dynamic: bool | None, *, follows_changes: bool
) -> _C.BackendHandle:
    """A backend that has ``compile_graph`` make something callable of each captured graph."""

    def compile_backward(
        root_gradients: list[tuple[str, int] | None],
        roots: list[tuple[int, int] | None],
        steps: list[_C.RawStep],
        result_count: int,
    ) -> Callable[..., Sequence[Any]]:
        lowering = Lowering.of_records(roots, steps)
        lifted = [None if one is None else Lifted(*one) for one in root_gradients]
        module = build_captured_graph(lowering, lifted, result_count, follows_changes=follows_changes)
        eliminate_dead_code(module.graph)
        module.recompile()
        return compile_graph(module)

    return _C.new_graph_backend(compile_backward, dynamic)


def run_generated_code(module: fx.GraphModule) -> Callable[..., Any]:
    """The backend ``graph``."""
    return make_runner(module.graph)


_backends: dict[tuple[str, bool | None], _C.BackendHandle] = {}
"""One for each way of compiling: what was compiled is kept with its backend."""


def find_backend(name: str, dynamic: bool | None = None) -> _C.BackendHandle | None:
    """The backend of that name; None is the native one.

    Raises:
        ValueError: no backend has that name.
    """
    if name == "native":
        return None
    if name != "graph":
        raise ValueError(f"no backend is called {name!r}; there are: native, graph")
    key = (name, dynamic)
    if key not in _backends:
        _backends[key] = graph_backend(run_generated_code, dynamic, follows_changes=True)
    return _backends[key]
