"""What is saved for each reading of the table is what torchgen saves for it, in any formula around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.model.saved_types import saved_type_of
from codegen.parse.formula import parse_formula
from codegen.parse.report import Report
from codegen.parse.schema import parse_schema
from codegen.resolve.attributes import ATTRIBUTES, Attribute
from codegen.resolve.formula import resolve_formula, values_of
from codegen.resolve.records import ResolvedFormula, Saved

from .torchgen_oracle import one_line

NAMES = ("self", "other", "_x")
PARAMETERS = ("0", "3", "-1", "-12", "dim")


def resolve(text: str, *, of: str, inputs: tuple[str, ...] = ("self",)) -> ResolvedFormula:
    """Over arguments of one type, and an integer ``dim``."""
    arguments = ", ".join(f"{of} {name}" for name in NAMES)
    report = Report()
    values = values_of(parse_schema(f"f({arguments}, int dim) -> Tensor"))
    resolved = resolve_formula(parse_formula(text), inputs, values, report)
    assert [item.render() for item in report.errors] == []
    return resolved


def by_torchgen(text: str, *, of: str, inputs: tuple[str, ...] = ("self",)) -> tuple[str, list[Saved]]:
    from torchgen.api import types as cpp
    from torchgen.packaged.autograd.load_derivatives import saved_variables

    tensor = {
        "Tensor": cpp.BaseCType(cpp.tensorT),
        "Tensor?": cpp.OptionalCType(cpp.BaseCType(cpp.tensorT)),
        "Tensor[]": cpp.BaseCType(cpp.tensorListT),
    }[of]
    arguments = [cpp.NamedCType(name, tensor) for name in NAMES]
    arguments.append(cpp.NamedCType("dim", cpp.BaseCType(cpp.longT)))
    formula, saved = saved_variables(text, arguments, inputs)
    return formula, [
        Saved(str(one.nctype.name), one.nctype.type.cpp_type(), one.expr, False) for one in saved
    ]


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda one: one.written)
@pytest.mark.parametrize("parameter", PARAMETERS)
def test_each_row_is_torchgens(attribute: Attribute, parameter: str) -> None:
    for name in NAMES:
        text = f"g(grad, {attribute.of_variable(name, parameter)})"
        ours = resolve(text, of=attribute.of, inputs=(name,))
        formula, saved = by_torchgen(text, of=attribute.of, inputs=(name,))
        assert (ours.text, list(ours.saved)) == (formula, saved)


PIECES = [
    *(one.of_variable(name, "0") for one in ATTRIBUTES if one.of == "Tensor" for name in ("self", "other")),
    *("self", "other", "grad", "grad.sym_sizes()", "self.sum()", "self.sum().dim()", "other[0]", "dim"),
    *("self.sym_size(dim)", "at::where(self, other, 0)", "selfish", "f.self", "{self, other.dim()}"),
]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5))
def test_formulas_of_several_readings_are_torchgens(pieces: list[str]) -> None:
    # Strides may be read in the formula of their own tensor alone.
    pieces = [piece for piece in pieces if piece != "other.sym_strides()"] or ["grad"]
    text = f"g({', '.join(pieces)})"
    ours = resolve(text, of="Tensor")
    formula, saved = by_torchgen(text, of="Tensor")
    assert one_line(ours.text) == formula
    assert {one.name: one for one in ours.saved} == {one.name: one for one in saved}


@pytest.mark.parametrize(
    ("text", "saved"),
    [
        ("f(self.sym_size(self.dim()))", ["self", "self_dim"]),
        ("self.sym_size(i)", ["self"]),
        ("self.sym_sizes(0)", ["self"]),
        ("at::zeros_like(self)", ["self"]),
        ("zeros_like(self, dim)", ["self", "dim"]),
        ("zeros_like(self.conj())", ["self"]),
        ("self.conj().scalar_type()", ["self"]),
    ],
)
def test_what_is_no_reading_saves_the_tensor(text: str, saved: list[str]) -> None:
    assert [one.name for one in resolve(text, of="Tensor").saved] == saved


def test_a_lambda_parameter_is_no_argument() -> None:
    text = "f(grad, [](Tensor other) { return other.numel(); })"
    resolved = resolve(text, of="Tensor")
    # A value whose name stands in a formula is saved, as torch's structs do; but nothing is read of it.
    assert ([one.name for one in resolved.saved], resolved.text) == (["other"], text)


def test_every_kind_of_saved_value_has_a_row() -> None:
    for attribute in ATTRIBUTES:
        saved_type_of(attribute.cpp_type)
