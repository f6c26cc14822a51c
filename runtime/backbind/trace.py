"""Decomposes a backward: from the live autograd graph to a graph of functional operators, without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from backbind import _C
from backbind._torch_private import in_graph_task, without_modes
from backbind.graph.lowering import Lowering
from backbind.graph.traced_backward import TracedBackward
from backbind.graph.traced_graph import build_graph

__all__ = ["TracedBackward", "leaves", "trace"]


def trace(
    outputs: torch.Tensor | Sequence[torch.Tensor],
    inputs: torch.Tensor | Sequence[torch.Tensor] | Mapping[str, torch.Tensor] | None = None,
    *,
    allow_unused: bool = False,
    copy_saved: bool = False,
    unpack_hooks: bool = False,
) -> TracedBackward:
    """The backward of ``outputs`` as a ``torch.fx.GraphModule`` of ``torch.ops.backbind`` calls.

    Nothing is run and the live graph is kept: it can still run its own backward. Saved tensors become buffers of the
    module, on the same storage; sizes, numbers and the like become constants. The module takes one gradient for each
    output (which a real scalar output may leave out, as in ``loss.backward()``) and returns one gradient for each
    input. Gradients are returned, never accumulated into ``.grad``.

    What has no operator is called: hooks of every kind, functions of Python and C++, changes of views in place, code
    that unpacks saved tensors (checkpoints, for example). Such a graph holds the live nodes that it calls, runs in this
    process alone, and calls a user's code at each run, as often as ``backward(retain_graph=True)`` would. Which nodes
    have which kinds of hooks is as it was at the trace. Hooks behind an accumulation are not called, because there is
    none; a function that runs a backward of its own (a reentrant checkpoint) accumulates, as it does in eager.

    A graph checks at every call that no saved tensor was changed in place since the trace, as eager does: an
    optimizer's step changes parameters, for example. A graph that is kept for longer should own copies
    (``copy_saved``), as one that was pickled or copied does.

    Args:
        outputs: tensors to differentiate, as in ``torch.autograd.grad``.
        inputs: leaves or other tensors of the graph whose gradients are wanted. A mapping makes the module return a
            dict with its keys, by which the graph calls gradients and saved inputs, too; otherwise it returns a
            tuple. Without ``inputs``: ``leaves(outputs)``.
        allow_unused: return None for an input that the outputs do not depend on, which is an error otherwise, as in
            ``torch.autograd.grad``.
        copy_saved: copy the saved tensors, so that the graph gives the gradients of the time of the trace whatever
            becomes of them. What a live node saved that the graph calls stays where it is.
        unpack_hooks: call the hooks of saved tensors (``torch.autograd.graph.saved_tensors_hooks``, checkpoints) now,
            each once, as one backward would. Without it the graph calls them, each time that it runs; so does a
            function that is called, for what it saved itself.

    Raises:
        TypeError: something is not a tensor.
        RuntimeError: an output or input does not require grad; an input is not used; a saved tensor was freed or
            changed in place (eager's own message).
    """
    with without_modes():
        roots = _as_list(outputs, "outputs")
        wanted = _C.leaves(roots) if inputs is None else _as_list(inputs, "inputs")
        lowering = Lowering.of(roots, wanted)
    unpacked = {i for i, step in enumerate(lowering.steps) if step.unpacks} if unpack_hooks else set()
    if unpacked:
        # Hooks are a user's code: they see the modes around them, and a backward that runs.
        lowering = in_graph_task(lambda: Lowering.of(roots, wanted, call_unpack_hooks=True))
    with without_modes():
        return build_graph(
            lowering,
            roots,
            wanted,
            names=tuple(inputs) if isinstance(inputs, Mapping) else None,
            # As in backward(), a leaf whose gradient turns out to be undefined has none.
            allow_unused=allow_unused or inputs is None,
            copy_saved=copy_saved,
            unpacked=frozenset(unpacked),
        )


def leaves(outputs: torch.Tensor | Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The leaves whose gradients ``torch.autograd.backward(outputs)`` would accumulate, in the order in which it would.

    Raises:
        TypeError: something is not a tensor.
        RuntimeError: an output does not require grad.
    """
    return _C.leaves(_as_list(outputs, "outputs"))


def _as_list(
    tensors: torch.Tensor | Sequence[torch.Tensor] | Mapping[str, torch.Tensor], what: str
) -> list[torch.Tensor]:
    """Raises TypeError for what is no tensors, RuntimeError where there are none."""
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    if isinstance(tensors, Mapping) and what == "inputs":
        values = list(tensors.values())
    elif isinstance(tensors, (list, tuple)):
        values = list(tensors)
    else:
        raise TypeError(
            f"{what} must be a tensor or a list or tuple of tensors, got {type(tensors).__name__}"
        )
    if not values:
        raise RuntimeError(f"{what} is empty: there is nothing to differentiate")
    return values
