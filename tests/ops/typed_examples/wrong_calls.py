"""Calls that a type checker must refuse, each on its line and for the reason in its comment.

In the project's own check the comments silence the errors, and would be errors themselves where there is none; a test
takes them away and compares what is then reported. Each function does one thing wrong, and raises when it is run.
"""

from __future__ import annotations

import backbind
import torch
from backbind import ops
from backbind._operator import FunctionalOperator

T = torch.ones(3)


def missing_argument() -> None:
    ops.TanhBackward0([T], [True])  # type: ignore[call-arg]


def too_many_arguments() -> None:
    ops.TanhBackward0([T], [True], T, T)  # type: ignore[call-arg]


def unknown_keyword() -> None:
    ops.TanhBackward0([T], [True], T, output=T)  # type: ignore[call-arg]


def misspelt_keyword() -> None:
    ops.TanhBackward0([T], needs_input_grads=[True], result=T)  # type: ignore[call-arg]


def argument_given_twice() -> None:
    ops.TanhBackward0([T], [True], T, grads=[T])  # type: ignore[misc]


def a_gradient_in_place_of_a_list() -> None:
    ops.TanhBackward0(T, [True], T)  # type: ignore[arg-type]


def a_flag_in_place_of_a_list() -> None:
    ops.TanhBackward0([T], True, T)  # type: ignore[arg-type]


def flags_that_are_no_flags() -> None:
    ops.TanhBackward0([T], ["self"], T)  # type: ignore[list-item]


def a_gradient_that_is_no_tensor() -> None:
    ops.TanhBackward0([1.0], [True], T)  # type: ignore[list-item]


def a_saved_tensor_that_is_no_tensor() -> None:
    ops.TanhBackward0([T], [True], [1.0, 2.0])  # type: ignore[arg-type]


def a_dtype_by_name() -> None:
    ops.AddBackward0([T], [True, True], 1, "float32", torch.float32)  # type: ignore[arg-type]


def no_dtype() -> None:
    ops.AddBackward0([T], [True, True], 1, None, torch.float32)  # type: ignore[arg-type]


def a_text_for_a_number() -> None:
    ops.AddBackward0([T], [True, True], "1", torch.float32, torch.float32)  # type: ignore[arg-type]


def one_size_for_all_sizes() -> None:
    ops.ViewBackward0([T], [True], 3)  # type: ignore[arg-type]


def no_sizes() -> None:
    ops.ViewBackward0([T], [True], None)  # type: ignore[arg-type]


def sizes_with_fractions() -> None:
    ops.ViewBackward0([T], [True], [1.5])  # type: ignore[list-item]


def arguments_in_another_order() -> None:
    ops.SumBackward1([T[0]], [True], False, None, [3])  # type: ignore[arg-type]


def none_in_a_list_of_tensors() -> None:
    ops.ForeachTanhBackward0([T], [True], [None], 1)  # type: ignore[list-item]


def a_gradient_that_may_be_none() -> None:
    ops.TanhBackward0([T], [False], T)[0].sum()  # type: ignore[union-attr]


def unknown_operator() -> None:
    ops.TanhBackward1([T], [True], T)  # type: ignore[attr-defined]


def unknown_attribute() -> None:
    ops.TanhBackward0.formula  # type: ignore[attr-defined]  # noqa: B018


def assigned_attribute() -> None:
    ops.TanhBackward0.schema = ""  # type: ignore[misc]


def an_operator_by_index() -> None:
    ops["TanhBackward0"]  # type: ignore[index]


def a_node_by_number() -> None:
    ops.get(7)  # type: ignore[arg-type]


def no_node() -> None:
    ops.for_node()  # type: ignore[call-arg]


def pack_of_two() -> None:
    backbind.pack(T.grad_fn, T)  # type: ignore[call-arg]


def a_function_as_an_operator() -> None:
    operator: FunctionalOperator = torch.tanh  # type: ignore[assignment]
    operator.schema  # noqa: B018


FUNCTIONS = (
    missing_argument,
    too_many_arguments,
    unknown_keyword,
    misspelt_keyword,
    argument_given_twice,
    a_gradient_in_place_of_a_list,
    a_flag_in_place_of_a_list,
    flags_that_are_no_flags,
    a_gradient_that_is_no_tensor,
    a_saved_tensor_that_is_no_tensor,
    a_dtype_by_name,
    no_dtype,
    a_text_for_a_number,
    one_size_for_all_sizes,
    no_sizes,
    sizes_with_fractions,
    arguments_in_another_order,
    none_in_a_list_of_tensors,
    a_gradient_that_may_be_none,
    unknown_operator,
    unknown_attribute,
    assigned_attribute,
    an_operator_by_index,
    a_node_by_number,
    no_node,
    pack_of_two,
    a_function_as_an_operator,
)
