"""The helper functions that this project brings for formulas, because torch keeps its own of that name to itself.

They are written in ``csrc/formulas``; a test holds this table against the headers there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Helper:
    """What is known of a helper before its formula runs."""

    returned: int | None = None
    """The argument that may come back as it is."""
    gives_views: bool = False
    """Whether the result may be a view that the helper makes."""


HELPERS = {
    "div_tensor_other_backward": Helper(),
    "div_tensor_self_backward": Helper(),
    "handle_r_to_c": Helper(returned=1),
    "maybe_multiply": Helper(returned=0),
    "mm_mat1_backward": Helper(gives_views=True),
    "mm_mat2_backward": Helper(gives_views=True),
    "mul_tensor_backward": Helper(),
    "permute_backwards": Helper(gives_views=True),
    "pow_backward": Helper(),
    "sum_backward": Helper(gives_views=True),
    "unsqueeze_to": Helper(returned=0, gives_views=True),
}
