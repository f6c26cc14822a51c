"""The C++ types of a forward operator's arguments and results: what is at hand when a value is saved whole."""

from __future__ import annotations

from .records import Value

ARGUMENT_TYPES = {
    "Tensor": "at::Tensor",
    "Tensor?": "::std::optional<at::Tensor>",
    "Tensor[]": "at::TensorList",
    "Tensor?[]": "c10::List<::std::optional<at::Tensor>>",
    "Scalar": "at::Scalar",
    "Scalar?": "::std::optional<at::Scalar>",
    "Scalar[]": "at::ArrayRef<at::Scalar>",
    "bool": "bool",
    "bool?": "::std::optional<bool>",
    "int": "int64_t",
    "int?": "::std::optional<int64_t>",
    "int[]": "at::IntArrayRef",
    "int[]?": "at::OptionalIntArrayRef",
    "SymInt": "c10::SymInt",
    "SymInt?": "::std::optional<c10::SymInt>",
    "SymInt[]": "c10::SymIntArrayRef",
    "SymInt[]?": "at::OptionalSymIntArrayRef",
    "float": "double",
    "float?": "::std::optional<double>",
    "str": "c10::string_view",
    "str?": "::std::optional<c10::string_view>",
    "ScalarType": "at::ScalarType",
    "Layout": "at::Layout",
    "TensorOptions": "at::TensorOptions",
}
"""By the type in the schema, without lengths. What is not here cannot be saved."""

RESULT_TYPES = ARGUMENT_TYPES | {"Tensor[]": "::std::vector<at::Tensor>"}
"""An operator owns the lists that it returns."""


def forward_type(value: Value) -> str | None:
    """The C++ type of an argument or result, or None if a value of its type cannot be saved."""
    return (RESULT_TYPES if value.is_output else ARGUMENT_TYPES).get(value.type)
