"""What runs captured graphs: the backends, by name, and how each makes something callable of a graph."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

import torch
from torch import fx

from backbind import _C
from backbind.graph.captured_graph import build_captured_graph
from backbind.graph.lowering import Lifted, Lowering
from backbind.graph.passes import eliminate_dead_code
from backbind.graph.runner import make_runner

Compiler = Callable[[fx.GraphModule], Callable[..., Any]]
"""Takes the graph of a backward, as a module that is called with five lists (``backbind.graph.captured_graph``), and
gives what is called in its place: a function of the same arguments that returns the same gradients."""

GROUP = "backbind.backends"
"""Entry points of this group name compilers."""

_HELD = 16
"""How many backends of different compilers or options are held, with all that they have compiled."""

_backends: OrderedDict[object, _C.BackendHandle] = OrderedDict()
"""The backends in use, the one used last at the end: a later capture() finds what an earlier one has compiled."""

_lock = threading.Lock()
"""Guards them."""


def backends() -> list[str]:
    """The names that ``capture(backend=...)`` takes: our own, those of installed packages, those of torch.compile."""
    names = ["native", "graph", *sorted(_installed())]
    return [*names, *(name for name in sorted(_known_to_torch()) if name not in names)]


def find_backend(
    backend: str | Compiler,
    *,
    dynamic: bool | None = None,
    fullgraph: bool = False,
    options: Mapping[str, Any] | None = None,
) -> _C.BackendHandle | None:
    """The backend for these options; None is the native one.

    Raises:
        ValueError: no backend has that name, or it has no use for an option.
        TypeError: ``backend`` is neither a name nor a function.
    """
    if backend == "native":
        _refuse_options(backend, dynamic=dynamic, fullgraph=fullgraph, options=options)
        return None
    if not isinstance(backend, str) and not callable(backend):
        raise TypeError(
            f"a backend is a name or a function that compiles a graph, got {type(backend).__name__}"
        )
    key = (backend, dynamic, fullgraph, None if options is None else repr(sorted(options.items())))
    with _lock:
        if key not in _backends:
            _backends[key] = _make_backend(backend, dynamic, fullgraph, options)
            while len(_backends) > _HELD:
                _backends.popitem(last=False)
        _backends.move_to_end(key)
        return _backends[key]


def _make_backend(
    backend: str | Compiler, dynamic: bool | None, fullgraph: bool, options: Mapping[str, Any] | None
) -> _C.BackendHandle:
    if backend == "graph":
        _refuse_options(backend, fullgraph=fullgraph, options=options)
        return _graph_backend(make_runner, dynamic, follows_changes=True)
    if isinstance(backend, str):
        installed = _installed().get(backend)
        if installed is None:
            return _graph_backend(
                _compiled_by_torch(_known_name(backend), dynamic, fullgraph, options),
                dynamic,
                follows_changes=False,
            )
        compiler: Compiler = installed.load()
    else:
        compiler = backend
    _refuse_options(getattr(compiler, "__name__", "a function"), fullgraph=fullgraph, options=options)
    return _graph_backend(_compiled_by(compiler), dynamic, follows_changes=False)


def _graph_backend(
    compile_graph: Callable[[fx.Graph], Callable[..., Any]], dynamic: bool | None, *, follows_changes: bool
) -> _C.BackendHandle:
    def compile_backward(
        root_gradients: list[tuple[str, int] | None],
        roots: list[tuple[int, int] | None],
        steps: list[_C.RawStep],
        result_count: int,
    ) -> Callable[..., Sequence[Any]]:
        lowering = Lowering.of_records(roots, steps)
        lifted = [None if one is None else Lifted(*one) for one in root_gradients]
        graph = build_captured_graph(lowering, lifted, result_count, follows_changes=follows_changes)
        eliminate_dead_code(graph)
        return compile_graph(graph)

    return _C.new_graph_backend(compile_backward, dynamic, follows_changes)


def _compiled_by(compiler: Compiler) -> Callable[[fx.Graph], Callable[..., Any]]:
    def compile_graph(graph: fx.Graph) -> Callable[..., Any]:
        from backbind.graph.traceable_nodes import TraceableNode

        compiled = compiler(fx.GraphModule(torch.nn.Module(), graph, "CapturedBackward"))

        def run(inputs: Any, sizes: Any, scalars: Any, hooks: list[_C.LiveNode], packed_data: Any) -> Any:
            return compiled(inputs, sizes, scalars, [TraceableNode(one) for one in hooks], packed_data)

        return run

    return compile_graph


def _compiled_by_torch(
    name: str, dynamic: bool | None, fullgraph: bool, options: Mapping[str, Any] | None
) -> Callable[[fx.Graph], Callable[..., Any]]:
    def compiler(module: fx.GraphModule) -> Callable[..., Any]:
        compiled: Callable[..., Any] = torch.compile(
            module.forward,
            backend=name,
            dynamic=dynamic,
            fullgraph=fullgraph,
            options=None if options is None else dict(options),
        )
        return compiled

    return _compiled_by(compiler)


def _installed() -> dict[str, Any]:
    return {one.name: one for one in entry_points(group=GROUP)}


def _known_to_torch() -> list[str]:
    import torch._dynamo

    return torch._dynamo.list_backends(exclude_tags=())


def _known_name(name: str) -> str:
    if name in _known_to_torch():
        return name
    near = _C.nearest_name(name, backends())
    hint = "" if near is None else f", did you mean {near!r}?"
    raise ValueError(f"no backend is called {name!r}{hint}; backbind.backends() lists them")


def _refuse_options(backend: str, **options: object) -> None:
    for name, value in options.items():
        if value not in (None, False):
            raise ValueError(
                f"backend {backend!r} has no use for {name}={value!r}: only torch.compile's backends do"
            )
