"""Which dispatch keys may be left out while a formula runs, by the kind of the formula."""

from __future__ import annotations

import pytest

from codegen.model.library import Library
from codegen.model.link_facts import NOTHING_LINKS
from codegen.model.node import Formula, StepKeys
from codegen.model.step_keys import step_keys
from codegen.parse.formula import parse_formula
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.operators import load_operators
from codegen.torch_library import torch_library

ALL, BELOW_AUTOGRAD, BELOW_AD_INPLACE_OR_VIEW = (
    StepKeys.ALL,
    StepKeys.BELOW_AUTOGRAD,
    StepKeys.BELOW_AD_INPLACE_OR_VIEW,
)
IF_CONTIGUOUS = StepKeys.BELOW_AUTOGRAD_IF_CONTIGUOUS


@pytest.fixture(scope="module")
def library(installed_torch: TorchInstall) -> Library:
    return torch_library(installed_torch, load_operators(installed_torch), NOTHING_LINKS)


def formula_of(text: str) -> Formula:
    return Formula(("self",), text, text, 1, (text,), parse_formula(text))


@pytest.mark.parametrize(
    ("formulas", "expected"),
    [
        # Made by one operator.
        (["gelu_backward(grad, self, approximate)"], BELOW_AD_INPLACE_OR_VIEW),
        (["grad * result"], BELOW_AD_INPLACE_OR_VIEW),
        (["-grad"], BELOW_AD_INPLACE_OR_VIEW),
        (["grad.masked_fill(mask, 0)"], BELOW_AD_INPLACE_OR_VIEW),
        # Whatever the way to that operator.
        (
            ["at::gelu_backward(grad.t(), self.reshape_symint(self_sym_sizes), approximate)"],
            BELOW_AD_INPLACE_OR_VIEW,
        ),
        (["grad / self.conj()"], BELOW_AD_INPLACE_OR_VIEW),
        # Nothing made at all.
        (["grad"], BELOW_AD_INPLACE_OR_VIEW),
        (["grads[1]"], BELOW_AD_INPLACE_OR_VIEW),
        (["maybe_multiply(grad, alpha)"], BELOW_AD_INPLACE_OR_VIEW),
        # A view of what came in or was made.
        (["grad.t()"], BELOW_AUTOGRAD),
        (["grad.transpose(dim0, dim1).squeeze(dim)"], BELOW_AUTOGRAD),
        (["grad.expand_symint(self_sym_sizes)"], BELOW_AUTOGRAD),
        (["permute_backwards(grad, dims)"], BELOW_AUTOGRAD),
        (["mm_mat1_backward(grad, mat2, sizes, strides, layout, 1)"], BELOW_AUTOGRAD),
        # A view of what lies in order, and a copy of what does not.
        (["grad.reshape_symint(self_sym_sizes)"], IF_CONTIGUOUS),
        (["at::reshape(grad, {-1})", "grad"], IF_CONTIGUOUS),
        (["grad.t().reshape_symint(self_sym_sizes)"], ALL),
        (["result.reshape_symint(self_sym_sizes)"], ALL),
        (["grad.reshape_symint(self_sym_sizes)", "grad * self"], ALL),
        # A view of something that an operator made, whose version can be seen through it.
        (["(grad * result).t()"], ALL),
        # Made of operators, or not of operators, or of nothing that went through autograd.
        (["cummaxmin_backward(grad, self, indices, dim)"], ALL),
        (["at::zeros_symint(self_sym_sizes, self_options)"], ALL),
        (['not_implemented("zeta")'], ALL),
        # Changed in place.
        (["grad.clone().mul_(2)"], ALL),
        # Of several ways, or for several inputs: what all allow.
        (["self.defined() ? grad * self : grad"], BELOW_AD_INPLACE_OR_VIEW),
        (["grad.defined() ? gelu_backward(grad, self, none) : Tensor()"], BELOW_AD_INPLACE_OR_VIEW),
        (
            [
                "grad.defined() ? native_layer_norm_backward(grad, a, b, c, d, e, f, m) : std::tuple<Tensor, Tensor>()"
            ],
            BELOW_AD_INPLACE_OR_VIEW,
        ),
        (["self.defined() ? grad * self : grad.t()"], ALL),
        (["grad", "-grad"], BELOW_AD_INPLACE_OR_VIEW),
        (["grad", "grad.t()"], BELOW_AUTOGRAD),
        (["grad * self", "grad.t()"], ALL),
        (
            ["handle_r_to_c(self_scalar_type, grad)", "handle_r_to_c(other_scalar_type, grad.t())"],
            BELOW_AUTOGRAD,
        ),
        (["handle_r_to_c(self_scalar_type, grad.clone().mul_(2))"], ALL),
    ],
)
def test_keys_by_kind(formulas: list[str], expected: StepKeys, library: Library) -> None:
    keys, _ = step_keys([formula_of(text) for text in formulas], library)
    assert keys is expected


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("gelu_backward(grad, self, approximate)", {"gelu_backward"}),
        ("grad.transpose(dim0, dim1).squeeze(dim)", {"transpose", "squeeze"}),
        ("maybe_multiply(grad, alpha)", {"mul"}),
        ("grad", set()),
        # With all keys nobody's kernel is left out.
        ("(grad * result).t()", set()),
        ("cummaxmin_backward(grad, self, indices, dim)", set()),
    ],
)
def test_operators_beneath_the_keys(formula: str, expected: set[str], library: Library) -> None:
    _, called = step_keys([formula_of(formula)], library)
    assert set(called) == expected
