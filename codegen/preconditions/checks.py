"""The checks that a precondition can name, and what each of their parameters takes.

They are the members of ``Preconditions`` in csrc/nodes/preconditions.h, where each says what it asks for; a test holds
this table against that header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a parameter takes; the value says it in messages."""

    TENSOR = "a tensor"
    """``self``, ``grads[0]`` or ``missing(indices)``, with its name."""
    TENSORS = "a list of tensors in braces"
    VALUE = "a value"
    """A saved value, a number, a truth value, or a product of them."""
    POSITION = "the position of a gradient"
    NAMED_VALUE = "a saved value"
    """One that is no tensor, with its name."""
    LENGTH = "a list"
    """Its length with its name; ``grads`` is one too."""
    SIZES = "a list of sizes"
    RANK = "a number of dimensions"
    """``rank(self)``, ``rank(grads[0])`` or a saved value."""
    TENSOR_OR_SIZES = "a tensor or a list of sizes"


@dataclass(frozen=True)
class Check:
    """The parameters of one check."""

    parameters: tuple[Kind, ...]
    takes_gradients: bool = False
    """Whether all gradients come before the parameters; nobody writes them."""


def _check(*parameters: Kind) -> Check:
    return Check(parameters)


def _of_gradients(*parameters: Kind) -> Check:
    return Check(parameters, takes_gradients=True)


_TENSOR, _TENSORS, _VALUE, _NAMED_VALUE = Kind.TENSOR, Kind.TENSORS, Kind.VALUE, Kind.NAMED_VALUE
_LENGTH, _SIZES, _RANK = Kind.LENGTH, Kind.SIZES, Kind.RANK

CHECKS: Mapping[str, Check] = {
    "antialiased": _of_gradients(_SIZES, _VALUE, _VALUE, _VALUE, _VALUE),
    "attention": _of_gradients(_TENSOR, _TENSOR, _TENSOR, _TENSOR, _TENSOR),
    "bag_gradient": _of_gradients(_TENSOR, _VALUE, _VALUE, _TENSOR, _TENSOR, _TENSOR),
    "bags": _of_gradients(_TENSOR, _TENSOR, _TENSOR),
    "batch_norm": _of_gradients(_VALUE, _TENSOR, _TENSORS, _TENSORS, _TENSORS),
    "between": _check(_NAMED_VALUE, _VALUE, _VALUE),
    "classes": _check(_TENSOR, _TENSOR, _VALUE, _VALUE),
    "contiguous": _check(_TENSOR),
    "convolution": _check(_TENSOR, _TENSOR, _TENSOR, _VALUE, _VALUE, _VALUE, _VALUE, _VALUE, _VALUE),
    "ctc": _of_gradients(_TENSOR, _TENSOR, _VALUE, _VALUE, _VALUE, _TENSOR, _TENSOR),
    "defined": _of_gradients(_TENSOR),
    "dim": _check(_NAMED_VALUE, _RANK),
    "distances": _of_gradients(_TENSOR, _TENSOR, _TENSOR),
    "distinct_dims": _check(_NAMED_VALUE, _RANK),
    "element_count": _check(_VALUE, _TENSORS),
    "expanded": _of_gradients(_SIZES),
    "fixed_length": _check(_LENGTH, _VALUE, _VALUE, _VALUE),
    "gates": _check(_TENSOR, _VALUE, _TENSOR),
    "gradient_count": _of_gradients(_VALUE),
    "gradient_sizes": _of_gradients(Kind.POSITION, Kind.TENSOR_OR_SIZES),
    "halved": _check(_TENSOR, _TENSOR, _VALUE),
    "joined_along": _check(_NAMED_VALUE, _VALUE),
    "layer_norm": _check(_TENSOR, _SIZES, _TENSORS, _TENSORS),
    "leading_sizes": _check(_TENSOR, _TENSOR, _VALUE),
    "length_at_least": _check(_LENGTH, _VALUE),
    "list_length": _check(_LENGTH, _VALUE),
    "margin_loss": _of_gradients(_VALUE, _TENSOR, _TENSOR, _TENSOR),
    "multilabel_loss": _of_gradients(_VALUE, _TENSOR, _TENSOR, _TENSOR),
    "padded": _of_gradients(_SIZES, _TENSOR),
    "pair_distances": _of_gradients(_TENSOR, _TENSOR),
    "pivots": _check(_TENSOR, _TENSOR),
    "points": _check(_TENSOR, _TENSOR, _VALUE, _VALUE),
    "pooled": _of_gradients(_VALUE, _TENSOR, _TENSOR),
    "positive": _check(_NAMED_VALUE),
    "rank_at_least": _check(_TENSOR, _VALUE),
    "readable": _check(_TENSOR),
    "reduced": _check(_NAMED_VALUE, _VALUE, _TENSOR),
    "repeated": _of_gradients(_SIZES, _SIZES),
    "row_loss": _of_gradients(_VALUE, _TENSOR),
    "rows": _check(_TENSOR, _TENSOR),
    "same_length": _check(_LENGTH, _LENGTH),
    "same_sizes": _check(_TENSOR, _TENSOR),
    "sampled": _check(_TENSOR, _TENSOR, _TENSOR),
    "segments": _of_gradients(_TENSOR, _VALUE, _TENSOR, _TENSOR, _TENSOR),
    "sizes": _check(_NAMED_VALUE),
    "sparse_reduction": _of_gradients(_TENSOR, _TENSOR, _VALUE, _TENSOR),
    "strides": _check(_LENGTH, _LENGTH, _VALUE),
    "transformed_dims": _check(_NAMED_VALUE, _RANK),
    "unfolded": _of_gradients(_SIZES, _VALUE, _VALUE, _VALUE),
    "values": _check(_TENSOR, _VALUE, _VALUE),
    "weight_norm": _of_gradients(_TENSOR, _VALUE, _TENSOR, _TENSOR),
}
