"""What is known of the helper functions that formulas call.

`HELPERS` are those that this project brings, because torch keeps its own of that name to itself. They are written in
``csrc/formulas``; tests hold the table against the headers there, and each claim against what the helper is seen to do
(tests/ops/test_claims_about_helpers.py).
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
    writes: bool = False
    """Whether the result was written to in place, which its version tells."""
    operators: tuple[str, ...] = ()
    """The operators that it calls for real tensors, by name without overload."""


HELPERS = {
    "_to_copy_backward": Helper(returned=0, operators=("_to_copy", "to")),
    "cat_tensors_backward": Helper(gives_views=True, writes=True, operators=("narrow", "slice", "zeros")),
    "clamp_backward": Helper(operators=("ge", "le", "logical_and", "logical_and_", "scalar_tensor", "where")),
    "clamp_backward_min_max": Helper(
        operators=("gt", "logical_and", "logical_or", "lt", "scalar_tensor", "where")
    ),
    "constant_pad_nd_backward": Helper(operators=("constant_pad_nd",)),
    "div_tensor_other_backward": Helper(operators=("div", "mul", "neg", "zeros_like")),
    "div_tensor_self_backward": Helper(operators=("div", "zeros_like")),
    "handle_r_to_c": Helper(returned=1),
    "index_backward": Helper(returned=0, writes=True, operators=("_index_put_impl_",)),
    "infinitely_differentiable_silu_backward": Helper(
        operators=("add", "empty_like", "fill_", "mul", "sigmoid", "sub_")
    ),
    "maybe_multiply": Helper(returned=0, operators=("mul",)),
    "mean_backward": Helper(operators=("div", "expand", "unsqueeze")),
    "mm_mat1_backward": Helper(gives_views=True, operators=("mm", "mul", "t", "transpose")),
    "mm_mat2_backward": Helper(gives_views=True, operators=("mm", "mul", "t", "transpose")),
    "mul_tensor_backward": Helper(operators=("mul",)),
    "permute_backwards": Helper(gives_views=True, operators=("permute",)),
    "pow_backward": Helper(operators=("mul", "pow", "zeros_like")),
    "slice_backward_wrapper": Helper(operators=("slice_backward",)),
    "split_backward": Helper(operators=("cat", "zeros")),
    "split_with_sizes_backward": Helper(operators=("cat", "zeros")),
    "stack_tensors_backward": Helper(gives_views=True, operators=("select",)),
    "sum_backward": Helper(gives_views=True, operators=("expand", "unsqueeze")),
    "unbind_backward": Helper(operators=("expand", "stack", "zeros")),
    "unsqueeze_to": Helper(returned=0, gives_views=True, operators=("unsqueeze",)),
}

ASK_REQUIRES_GRAD = {"linalg_solve_backward": 2}
"""Helpers of torch that compute the gradient of an argument only if the argument requires grad, and which one that is.

A live node's saved input requires grad where its gradient is needed; what an operator is given need not. A test over
all nodes finds helpers that are missing here (tests/ops/test_requires_grad.py).
"""
