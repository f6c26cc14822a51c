"""Takes a backward apart: from the live autograd graph to a graph of functional operators, without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from backbind import _C
from backbind._graph_builder import TracedBackward, build_graph
from backbind._walk import Walk


class TraceError(NotImplementedError):
    """The backward holds something that a traced graph cannot hold yet; the message names all of it."""


def trace(
    outputs: torch.Tensor | Sequence[torch.Tensor],
    inputs: torch.Tensor | Sequence[torch.Tensor] | Mapping[str, torch.Tensor] | None = None,
) -> TracedBackward:
    """The backward of ``outputs`` as a ``torch.fx.GraphModule`` of ``torch.ops.backbind`` calls.

    Nothing is run and the live graph is kept: it can still run its own backward. Saved tensors become buffers of the
    module, on the same storage; sizes, numbers and the like become constants. The module takes one gradient for each
    output (which a scalar output may leave out, as in ``loss.backward()``) and returns one gradient for each input,
    None where the outputs do not depend on it. Gradients are returned, never accumulated into ``.grad``.

    Args:
        outputs: tensors to differentiate, as in ``torch.autograd.grad``.
        inputs: leaves or other tensors of the graph whose gradients are wanted. A mapping makes the module return a
            dict with its keys, otherwise it returns a tuple. Without ``inputs``: ``leaves(outputs)``.

    Raises:
        TypeError: something is not a tensor.
        TraceError: the graph has hooks, or nodes that no entry of derivatives.yaml made (Python functions, copies of
            slices ...); the message lists them.
        RuntimeError: an output or input does not require grad; a saved tensor was freed or changed in place (eager's
            own message).
    """
    roots = _as_list(outputs, "outputs")
    wanted = _C.leaves(roots) if inputs is None else _as_list(inputs, "inputs")
    names = tuple(inputs) if isinstance(inputs, Mapping) else None
    walk = Walk.over(roots, wanted)
    _refuse_what_cannot_be_traced(walk)
    return build_graph(walk, roots, names)


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
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    if isinstance(tensors, Mapping):
        return list(tensors.values())
    if isinstance(tensors, (list, tuple)):
        return list(tensors)
    raise TypeError(f"{what} must be a tensor or a list or tuple of tensors, got {type(tensors).__name__}")


def _refuse_what_cannot_be_traced(walk: Walk) -> None:
    problems = []
    for position, step in enumerate(walk.steps):
        if step.hooks:
            problems.append(f"  step {position}, {step.node}: {', '.join(step.hooks)}")
        elif step.runs and step.operator is None:
            problems.append(f"  step {position}, {step.node}: made by no entry of derivatives.yaml")
    if problems:
        raise TraceError(
            "this backward cannot be traced yet, because of\n"
            + "\n".join(problems)
            + "\nremove the hooks, or leave such nodes out of the graph"
        )
