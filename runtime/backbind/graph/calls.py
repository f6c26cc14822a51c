"""What a graph calls besides operators: hooks, nodes without an operator, leaves, and code that unpacks saved tensors.

Each function takes the live node that it is about (an element of the placeholder ``hooks``, or an attribute of a traced
graph) and does what the engine does at that point of a backward. torch.compile leaves a user's code to Python, as where
the engine calls it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from backbind import _C
from backbind._torch_private import skip_frames
from backbind.graph.saved_tensors import SavedTensor

if TYPE_CHECKING:
    # Importing it imports the compiler, which is there anyway where one is at work.
    from backbind.graph.traceable_nodes import TraceableNode

    Node = _C.LiveNode | TraceableNode

Gradients = list[torch.Tensor | None]


@skip_frames
def tensor_pre_hooks(node: Node, gradients: Gradients) -> Gradients:
    """What the hooks on the tensors whose gradients these are make of them (``Tensor.register_hook``)."""
    return node.tensor_pre_hooks(gradients)


@skip_frames
def retain_grad(node: Node, gradients: Gradients) -> Gradients:
    """Keeps the gradients of tensors that retain them (``Tensor.retain_grad``), and returns them."""
    return node.retain_grad(gradients)


@skip_frames
def pre_hooks(node: Node, gradients: Gradients) -> Gradients:
    """What the hooks before the node make of the gradients (``Node.register_prehook``)."""
    return node.pre_hooks(gradients)


@skip_frames
def post_hooks(
    node: Node, results: Sequence[torch.Tensor | None], gradients: Sequence[torch.Tensor | None]
) -> Gradients:
    """What the hooks behind the node make of its results (``Node.register_hook``)."""
    return node.post_hooks(results, gradients)


@skip_frames
def call_node(node: Node, gradients: Gradients) -> Gradients:
    """The gradients that a node without an operator computes, each as its edge expects it: a function of Python
    or C++, CopySlices and others.

    Raises what the function raises, and RuntimeError where what it returns are no gradients of its inputs.
    """
    return node.call(gradients)


@skip_frames
def unpack(node: Node) -> Gradients:
    """The saved tensors of the node that have unpack hooks, in the order of its operator's arguments."""
    return node.unpack()


@skip_frames
def unchanged(buffer: torch.Tensor, saved: SavedTensor) -> torch.Tensor:
    """The buffer of a traced graph, behind code of a user, which may have changed what lies ahead.

    Raises:
        RuntimeError: eager's error, where it was changed in place since the trace.
    """
    if buffer is saved.tensor and saved.has_changed():
        raise saved.error()
    return buffer


def accumulate_grad(leaf: torch.Tensor, gradient: torch.Tensor | None) -> None:
    """Adds the gradient to ``leaf.grad``, as ``loss.backward()`` does."""
    if torch.compiler.is_dynamo_compiling():
        from backbind.graph import traceable_nodes

        traceable_nodes.accumulate_grad(leaf, gradient)
    else:
        _C.accumulate_grad(leaf, [gradient])


@skip_frames
def accumulate_grad_with_hooks(node: Node, leaf: torch.Tensor, gradient: torch.Tensor | None) -> None:
    """Adds the gradient to ``leaf.grad``, and calls what ``register_post_accumulate_grad_hook`` registered."""
    if torch.compiler.is_dynamo_compiling():
        node.accumulate_into(leaf, gradient)  # type: ignore[union-attr]  # no live node is compiled
    else:
        node.accumulate([gradient])


def leave_point(node: Node, *progress: object) -> None:
    """Behind a user's code: where a graph is left if that code changed what lies ahead, such as hooks or saved tensors.

    ``progress`` is what `backbind._C.LiveNode.resume` takes: the next step to be run, whether hooks before it have been
    called already, inputs of the steps from there on, what these have received so far, and the results so far. The
    backend ``graph`` goes on natively with that. A graph that is run otherwise cannot stop here.

    Raises:
        RuntimeError: the graph must be left.
    """
    if node.must_be_left:
        raise RuntimeError(
            f"code that was run for {node.name} has changed hooks or saved tensors of nodes that this backward had not "
            f"yet reached (step {progress[0]} is next); its graph does not know of that: run such a backward with "
            "backbind.capture(backend='native') or 'graph', which see what hooks do"
        )
