"""Every name that a formula may use besides those of its operator: helper functions, ATen, methods,
constants.

Formulas are compiled inside ``torch::autograd::generated::details`` with ``at`` in view. So a plain name is
looked up there, and a qualified one where it says. Names come from the installed torch's headers and schemas;
the few that headers make by macros, and those of the C++ library, are listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from .cpp_declarations import Declarations, find_declarations
from .locate import TorchInstall
from .operators import Operators

HELPERS_NAMESPACE = "torch::autograd::generated::details"
SCOPES = (
    HELPERS_NAMESPACE,
    "torch::autograd::generated",
    "torch::autograd",
    "torch",
    "at",
    "c10",
)
"""Namespaces in which a formula's plain names are looked up."""

DECLARING_HEADERS = (
    "ATen/ExpandUtils.h",
    "ATen/NestedTensorImpl.h",
    "ATen/TensorGeometry.h",
    "ATen/core/List.h",
    "ATen/core/Reduction.h",
    "ATen/core/TensorBase.h",
    "ATen/core/functional.h",
    "ATen/native/nested/NestedTensorUtils.h",
    "c10/core/Device.h",
    "c10/core/GradMode.h",
    "c10/core/Layout.h",
    "c10/core/MemoryFormat.h",
    "c10/core/Scalar.h",
    "c10/core/ScalarType.h",
    "c10/core/SymInt.h",
    "c10/core/TensorOptions.h",
    "c10/util/ArrayRef.h",
    "c10/util/OptionalArrayRef.h",
    "torch/csrc/autograd/function.h",
    "torch/headeronly/core/Layout.h",
    "torch/headeronly/core/MemoryFormat.h",
    "torch/headeronly/core/ScalarType.h",
    "torch/headeronly/util/HeaderOnlyArrayRef.h",
)
"""Headers whose names formulas use. A torch that lacks one has moved its names into another of them."""

TYPES = frozenset(
    {"at::ArrayRef", "at::IntArrayRef", "at::OptionalArrayRef", "at::OptionalIntArrayRef", "at::Scalar"}
    | {"at::ScalarType", "at::Tensor", "at::TensorGeometry", "at::TensorList", "at::TensorOptions"}
    | {"c10::List", "c10::SymInt", "c10::SymIntArrayRef", "c10::complex", "torch::autograd::TypeAndSize"}
    | {"bool", "double", "float", "int", "int32_t", "int64_t", "size_t"}
    | {f"std::{name}" for name in ("array", "complex", "initializer_list", "make_tuple", "optional", "pair")}
    | {f"std::{name}" for name in ("string", "string_view", "tuple", "vector")}
)
CASTS = frozenset({"const_cast", "dynamic_cast", "reinterpret_cast", "static_cast"})
LIBRARY_FUNCTIONS = frozenset(
    {
        "abs",
        "acos",
        "asin",
        "atan",
        "ceil",
        "cos",
        "cosh",
        "exp",
        "fabs",
        "floor",
        "log",
        "log10",
        "log1p",
        "log2",
    }
    | {"max", "min", "pow", "round", "sin", "sinh", "sqrt", "tan", "tanh", "isfinite", "isinf", "isnan"}
)
"""Functions of <cmath> and <algorithm>, found with and without ``std::``."""
STANDARD_FUNCTIONS = frozenset(
    f"std::{name}"
    for name in ("forward", "get", "make_optional", "make_pair", "make_tuple", "move", "tie", "accumulate")
)
STANDARD_METHODS = frozenset(
    {
        "back",
        "begin",
        "data",
        "emplace_back",
        "empty",
        "end",
        "first",
        "front",
        "has_value",
        "imag",
        "push_back",
    }
    | {"real", "reserve", "second", "size", "value", "value_or"}
)
"""Members of optional, vector, pair, complex."""
MACRO_METHODS = frozenset(
    {
        "item",
        "toBool",
        "toChar",
        "toComplexDouble",
        "toComplexFloat",
        "toDouble",
        "toFloat",
        "toHalf",
        "toInt",
    }
    | {"toLong", "toSymBool", "toSymFloat", "toSymInt", "zeros"}
)
"""Members that torch's headers make by macros (the accessors of Scalar) or as templates."""
MACRO_CONSTANTS = frozenset(
    {
        "M_1_PI",
        "M_2_PI",
        "M_2_SQRTPI",
        "M_E",
        "M_LN10",
        "M_LN2",
        "M_LOG10E",
        "M_LOG2E",
        "M_PI",
        "M_PI_2",
        "M_PI_4",
    }
    | {"M_SQRT1_2", "M_SQRT2", "INFINITY", "NAN", "std::nullopt", "std::numeric_limits"}
    | {
        f"at::k{name}"
        for name in ("Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "BFloat16", "Float")
    }
    | {
        f"at::k{name}"
        for name in ("Double", "ComplexHalf", "ComplexFloat", "ComplexDouble", "CPU", "CUDA", "Meta")
    }
)
SAVED_FUNCTIONS = frozenset(
    {"isDifferentiableType", "to_args_scalartypes", "to_args_sizes", "to_args_sizes_symint", "wrap_opt_if"}
)
"""Functions that the forward calls when it saves values; they stand in no header that formulas see."""
SAVED_METHODS = frozenset({"sym_blocksize"})
"""Members that the forward reads when it saves values, and that Tensor does not have."""


@dataclass(frozen=True)
class Vocabulary:
    """The known names of one torch. All plain data, so that it can be kept as JSON."""

    helpers: frozenset[str]
    """Functions made for formulas: ``mm_mat1_backward``."""
    functions: frozenset[str]
    """ATen functions without namespace: ``where``, ``zeros_symint``."""
    methods: frozenset[str]
    """Members of every type that occurs in formulas, without their type: ``sym_size``, ``has_value``."""
    constants: frozenset[str]
    """Values with their namespace: ``c10::kJagged``, ``at::Reduction::None``, ``M_PI``."""
    types: frozenset[str]
    """Types with their namespace, which formulas call to construct a value."""
    qualified: frozenset[str]
    """Further functions with their namespace: ``c10::GradMode::is_enabled``, ``std::get``."""
    dispatch_keys: tuple[str, ...]
    """The keys that ``dispatch:`` may name, ``Default`` first."""

    def is_function(self, name: str) -> bool:
        """Whether ``name``, plain or qualified, can be called: a function or a type."""
        return any(candidate in self._callable for candidate in candidates(name))

    def is_constant(self, name: str) -> bool:
        """Whether ``name``, plain or qualified, is a value."""
        return any(candidate in self.constants for candidate in candidates(name))

    @cached_property
    def namespaces(self) -> frozenset[str]:
        """Every first part of a qualified name."""
        return frozenset(name.partition("::")[0] for name in self._callable | self.constants if "::" in name)

    @cached_property
    def _callable(self) -> frozenset[str]:
        helpers = {f"{HELPERS_NAMESPACE}::{name}" for name in self.helpers}
        return frozenset(helpers | {f"at::{name}" for name in self.functions} | self.types | self.qualified)

    @cached_property
    def callable_names(self) -> frozenset[str]:
        """Everything callable in every way in which a formula would write it, for suggestions."""
        return frozenset(spelling for name in self._callable for spelling in spellings(name))

    @cached_property
    def constant_names(self) -> frozenset[str]:
        """Every constant in every way in which a formula would write it, for suggestions."""
        return frozenset(spelling for name in self.constants for spelling in spellings(name))

    def with_header(self, text: str) -> Vocabulary:
        """This vocabulary and the names that a header of the user's own declares."""
        found = find_declarations(text)
        methods = {name.rpartition("::")[2] for name in found.methods}
        return replace(
            self,
            qualified=self.qualified | found.functions | found.static_methods,
            constants=self.constants | found.values,
            types=self.types | found.types,
            methods=self.methods | methods,
        )

    def with_operators(self, operators: Operators) -> Vocabulary:
        """This vocabulary and the functions and methods of more operators."""
        return replace(
            self, functions=self.functions | operators.functions, methods=self.methods | operators.methods
        )

    def to_json(self) -> dict[str, list[str]]:
        """Plain lists in a fixed order."""
        return {name: sorted(getattr(self, name)) for name in _SETS} | {
            "dispatch_keys": list(self.dispatch_keys)
        }

    @staticmethod
    def from_json(data: Mapping[str, Iterable[str]]) -> Vocabulary:
        """What `to_json` gave."""
        sets = {name: frozenset(data[name]) for name in _SETS}
        return Vocabulary(**sets, dispatch_keys=tuple(data["dispatch_keys"]))


_SETS = ("helpers", "functions", "methods", "constants", "types", "qualified")


def load_vocabulary(install: TorchInstall, operators: Operators) -> Vocabulary:
    """The vocabulary of an installed torch, from its headers and ``operators``."""
    helpers = find_declarations(_read(install.helpers_header))
    others = Declarations()
    for header in DECLARING_HEADERS:
        others.update(find_declarations(_read(install.include / header)))
    prefix = f"{HELPERS_NAMESPACE}::"
    return Vocabulary(
        helpers=frozenset(name.removeprefix(prefix) for name in helpers.functions if name.startswith(prefix)),
        functions=operators.functions,
        methods=operators.methods
        | STANDARD_METHODS
        | MACRO_METHODS
        | SAVED_METHODS
        | {name.rpartition("::")[2] for name in others.methods | helpers.methods},
        constants=frozenset(helpers.values | others.values) | MACRO_CONSTANTS,
        types=frozenset(helpers.types | others.types) | TYPES,
        qualified=frozenset(others.functions | others.static_methods)
        | STANDARD_FUNCTIONS
        | CASTS
        | SAVED_FUNCTIONS
        | LIBRARY_FUNCTIONS
        | {f"std::{name}" for name in LIBRARY_FUNCTIONS},
        dispatch_keys=("Default", *read_dispatch_keys(install)),
    )


def read_dispatch_keys(install: TorchInstall) -> tuple[str, ...]:
    """The autograd dispatch keys of an installed torch: one per backend that its torchgen lists.

    torchgen is read as text and not imported, because a process can hold the torchgen of one torch only.
    """
    listed = re.search(
        r"^BACKEND_COMPONENTS = \[(.*?)\]", _read(install.torchgen / "model.py"), re.MULTILINE | re.DOTALL
    )
    backends = re.findall(r'"(\w+)"', listed[1]) if listed else []
    return ("AutogradNestedTensor", *(f"Autograd{backend}" for backend in backends))


def candidates(name: str) -> Iterable[str]:
    """The full names that ``name`` may stand for in a formula."""
    yield name
    for scope in SCOPES:
        yield f"{scope}::{name}"
    first, _, rest = name.partition("::")
    # at and torch take in everything of c10, and torch everything of at.
    if first in ("at", "torch"):
        yield f"c10::{rest}"
    if first in ("torch", "c10"):
        yield f"at::{rest}"


def spellings(name: str) -> Iterable[str]:
    """The ways in which a formula may write a full name: ``at::where`` and ``where``."""
    for scope in SCOPES:
        if name.startswith(f"{scope}::"):
            yield name.removeprefix(f"{scope}::")
            if scope not in ("at", "c10"):
                return
    yield name


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
