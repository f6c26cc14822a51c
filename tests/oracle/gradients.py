"""Random gradients for a live node: of the dtype, shape and layout of the results that it stands for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
from torch.autograd.graph import GradientEdge, Node

from tests.oracle.compare import MKLDNN
from tests.oracle.graph_walk import reachable_nodes
from tests.oracle.kinds import kind_of_shape
from tests.oracle.live_node import run_engine
from tests.oracle.outcome import SEED

Results: TypeAlias = Mapping[tuple[Node, int], torch.Tensor]
"""The results of a program by the node and position that their gradients arrive at."""


_NO_RESULT = "was_default_constructed_"
"""In the engine's complaint about a gradient for a result that the forward left undefined."""


@dataclass(frozen=True)
class GradientSpec:
    """What the gradient of one result of the forward looks like."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    device: torch.device
    like: torch.Tensor | None
    """The result itself where it is known and not an ordinary dense tensor: then the gradient has its structure."""

    exists: bool
    """Whether the forward gave this result at all: a gradient for an undefined result is always undefined."""

    @property
    def kind(self) -> Hashable:
        return (
            self.exists,
            self.dtype,
            kind_of_shape(self.shape),
            None if self.like is None else self.like.layout,
        )


def gradient_specs(node: Node, results: Results) -> list[GradientSpec]:
    """One for each gradient that ``node`` takes."""
    return [_spec(node, position, results) for position in range(len(node._input_metadata))]


def has_known_shapes(node: Node, results: Results) -> bool:
    """Whether the shape of every gradient can be told: that of a nested one is known only from an example."""
    return all(
        (node, position) in results or not metadata.is_nested_tensor
        for position, metadata in enumerate(node._input_metadata)
    )


def has_nested_results(node: Node) -> bool:
    """Whether ``node`` takes a gradient that is a nested tensor of the C++ kind.

    The other kind is a Python class; running backwards of it with hooks crashes inside torch 2.13.
    """
    return any(metadata.is_cpp_nested_tensor for metadata in node._input_metadata)


def arriving_gradients(results: Results) -> dict[tuple[Node, int], torch.Tensor]:
    """What arrives at the nodes behind ``results`` in a backward: examples of the gradients that they take."""
    arrived: dict[tuple[Node, int], torch.Tensor] = {}

    def keep(node: Node, gradients: tuple[torch.Tensor | None, ...]) -> None:
        arrived.update({(node, at): one for at, one in enumerate(gradients) if one is not None})

    nodes = list(reachable_nodes(node for node, _ in results))
    handles = [node.register_prehook(partial(keep, node)) for node in nodes if node.next_functions]
    leaves = [GradientEdge(node, 0) for node in nodes if not node.next_functions]
    roots = [GradientEdge(node, position) for node, position in results]
    gradients = random_gradients([_spec(node, position, results) for node, position in results])
    try:
        run_engine(roots, gradients, leaves)
    except Exception:
        # A node that cannot run ends this backward; what arrived before it is what there is.
        return arrived
    finally:
        for handle in handles:
            handle.remove()
    return arrived


def _spec(node: Node, position: int, results: Results) -> GradientSpec:
    metadata = node._input_metadata[position]
    like = results.get((node, position))
    if like is not None and not like.is_nested and like.layout == torch.strided:
        like = None
    # A nested tensor has no shape that its metadata could tell.
    shape = () if metadata.is_nested_tensor else tuple(metadata.shape)
    exists = like is not None or shape != () or _result_exists(node, position)
    return GradientSpec(metadata.dtype, shape, metadata.device, like, exists)


def _result_exists(node: Node, position: int) -> bool:
    """Ask the engine: metadata of an undefined result looks like that of a scalar from Python."""
    metadata = node._input_metadata[position]
    targets = [GradientEdge(function, at) for function, at in node.next_functions if function is not None]
    if metadata.is_nested_tensor or not targets or len(node._input_metadata) == 1:
        return True
    gradient = torch.zeros((), dtype=metadata.dtype, device=metadata.device)
    handle = node.register_prehook(lambda _: (None,) * len(node._input_metadata))
    try:
        run_engine([GradientEdge(node, position)], [gradient], targets[:1])
    except RuntimeError as error:
        return _NO_RESULT not in str(error)
    finally:
        handle.remove()
    return True


def random_gradients(specs: list[GradientSpec]) -> list[torch.Tensor]:
    """Random values, always the same ones."""
    generator = torch.Generator().manual_seed(SEED)
    return [_random(spec, generator) for spec in specs]


def _random(spec: GradientSpec, generator: torch.Generator) -> torch.Tensor:
    if spec.like is None:
        return _random_values(spec.shape, spec.dtype, generator).to(spec.device)
    like = spec.like.detach()
    if like.layout == torch.jagged:
        # Its generator is the global one, which outcome_of resets.
        torch.default_generator.manual_seed(SEED)
        return torch.randn_like(like)
    if like.is_nested:
        parts = [_random_values(tuple(part.shape), part.dtype, generator) for part in like.unbind()]
        return torch.nested.as_nested_tensor(parts)
    if like.layout == torch.sparse_coo:
        values = _random_values(tuple(like._values().shape), like.dtype, generator)
        made = torch.sparse_coo_tensor(like._indices(), values, like.shape, check_invariants=False)
        return made._coalesced_(like.is_coalesced())
    if like.layout in (torch.sparse_csr, torch.sparse_bsr):
        values = _random_values(tuple(like.values().shape), like.dtype, generator)
        return torch.sparse_compressed_tensor(
            like.crow_indices(), like.col_indices(), values, like.shape, layout=like.layout
        )
    if like.layout in (torch.sparse_csc, torch.sparse_bsc):
        values = _random_values(tuple(like.values().shape), like.dtype, generator)
        return torch.sparse_compressed_tensor(
            like.ccol_indices(), like.row_indices(), values, like.shape, layout=like.layout
        )
    assert like.layout == MKLDNN, f"no random gradient of layout {like.layout}"
    return _random_values(tuple(like.shape), like.dtype, generator).to_mkldnn()


def _random_values(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    if dtype.is_floating_point or dtype.is_complex:
        drawn_as = dtype if dtype in (torch.float64, torch.complex64, torch.complex128) else torch.float32
        return torch.randn(shape, dtype=drawn_as, generator=generator).to(dtype)
    return torch.randint(0, 2, shape, generator=generator).to(dtype)


def scattered_in_memory(gradient: torch.Tensor) -> torch.Tensor:
    """The same values at every second place of their memory: dense in no order."""
    if gradient.layout != torch.strided or gradient.is_nested:
        return gradient
    return gradient.unsqueeze(-1).expand(*gradient.shape, 2).contiguous()[..., 0]
