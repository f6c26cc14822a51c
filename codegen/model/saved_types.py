"""How a saved value of each type behaves: the one table that every emitter asks.

A row says where the value comes from (its C++ type in the forward), where the node struct keeps it, how C++
passes it, and which arguments of an operator schema carry it. A type without a row is an error: there is no default.
Both C++ sides, ``csrc/ivalue/pack.h`` and ``csrc/ivalue/unpack.h``, have one function for each row, named by its key.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Component:
    """One schema argument of a saved value; most values have one, composite values several."""

    suffix: str
    """Appended to the saved value's name; empty for the only component: ``_sizes``."""
    schema: str
    """The type in an operator schema: ``SymInt[]``."""
    kind: str
    """The enumerator of ``backbind::ValueKind`` that tells how Python objects become this argument: ``SymIntList``."""
    annotation: str
    """The type in Python: ``Sequence[int]``."""


@dataclass(frozen=True)
class SavedType:
    """One row of the table."""

    key: str
    """Names the row, and the pack and unpack functions in C++: ``sym_int_list``."""
    ctypes: tuple[str, ...]
    """Types in the forward of values of this row, as `codegen.resolve` has them: ``("c10::SymIntArrayRef",)``."""
    member: str
    """The type of the node struct's field, as libclang spells it without ``torch::autograd::generated::``."""
    value: str
    """The type of a local that formulas see: ``std::vector<c10::SymInt>``."""
    components: tuple[Component, ...]
    by_value: bool = False
    """Whether C++ passes it by value: numbers, enumerations, and optional arrays, which become references to their
    elements only where they are mutable."""
    is_tensor: bool = False
    """Whether the field is a SavedVariable (or a vector of them): its name then ends with an underscore."""
    is_list: bool = False
    """Whether the field is a vector of SavedVariables."""
    has_released_flag: bool = False
    """Whether a flag beside the field tells that it was released; torch never raises that of a list of scalars."""

    @property
    def parameter(self) -> str:
        """The type of a C++ parameter."""
        return self.value if self.by_value else f"const {self.value}&"


class UnknownSavedTypeError(Exception):
    """A saved value has a type that the table does not know."""


def _one(schema: str, kind: str, annotation: str) -> tuple[Component, ...]:
    return (Component("", schema, kind, annotation),)


_OPTIONS = (
    Component("_dtype", "ScalarType?", "OptionalScalarType", "torch.dtype | None"),
    Component("_layout", "Layout?", "OptionalLayout", "torch.layout | None"),
    Component("_device", "Device?", "OptionalDevice", "torch.device | None"),
    Component("_pin_memory", "bool?", "OptionalBool", "bool | None"),
)
_SIZES = Component("_sizes", "SymInt[]", "SymIntList", "Sequence[IntLike]")

SAVED_TYPES: tuple[SavedType, ...] = (
    SavedType(
        "tensor",
        ("at::Tensor", "::std::optional<at::Tensor>"),
        "SavedVariable",
        "at::Tensor",
        _one("Tensor?", "OptionalTensor", "Tensor | None"),
        is_tensor=True,
    ),
    SavedType(
        "tensor_list",
        ("at::TensorList", "::std::vector<at::Tensor>"),
        "std::vector<SavedVariable>",
        "std::vector<at::Tensor>",
        _one("Tensor[]", "TensorList", "Sequence[Tensor]"),
        is_tensor=True,
        is_list=True,
        has_released_flag=True,
    ),
    SavedType(
        "optional_tensor_list",
        ("c10::List<::std::optional<at::Tensor>>",),
        "std::vector<SavedVariable>",
        "c10::List<std::optional<at::Tensor>>",
        _one("Tensor?[]", "OptionalTensorList", "Sequence[Tensor | None]"),
        is_tensor=True,
        is_list=True,
        has_released_flag=True,
    ),
    SavedType("boolean", ("bool",), "bool", "bool", _one("bool", "Bool", "bool"), by_value=True),
    SavedType(
        "optional_boolean",
        ("::std::optional<bool>",),
        "std::optional<bool>",
        "std::optional<bool>",
        _one("bool?", "OptionalBool", "bool | None"),
        by_value=True,
    ),
    SavedType("integer", ("int64_t",), "int64_t", "int64_t", _one("int", "Int", "int"), by_value=True),
    SavedType(
        "optional_integer",
        ("::std::optional<int64_t>",),
        "std::optional<int64_t>",
        "std::optional<int64_t>",
        _one("int?", "OptionalInt", "int | None"),
        by_value=True,
    ),
    SavedType("list_size", ("size_t",), "size_t", "size_t", _one("int", "Int", "int"), by_value=True),
    SavedType(
        "integer_list",
        ("at::IntArrayRef",),
        "std::vector<int64_t>",
        "std::vector<int64_t>",
        _one("int[]", "IntList", "Sequence[int]"),
    ),
    SavedType(
        "optional_integer_list",
        ("at::OptionalIntArrayRef", "::std::optional<at::IntArrayRef>"),
        "c10::OptionalArray<int64_t>",
        "c10::OptionalArray<int64_t>",
        _one("int[]?", "OptionalIntList", "Sequence[int] | None"),
        by_value=True,
    ),
    SavedType("sym_int", ("c10::SymInt",), "c10::SymInt", "c10::SymInt", _one("SymInt", "SymInt", "IntLike")),
    SavedType(
        "optional_sym_int",
        ("::std::optional<c10::SymInt>",),
        "std::optional<c10::SymInt>",
        "std::optional<c10::SymInt>",
        _one("SymInt?", "OptionalSymInt", "IntLike | None"),
    ),
    SavedType(
        "sym_int_list",
        ("c10::SymIntArrayRef",),
        "std::vector<c10::SymInt>",
        "std::vector<c10::SymInt>",
        _one("SymInt[]", "SymIntList", "Sequence[IntLike]"),
    ),
    SavedType(
        "optional_sym_int_list",
        ("::std::optional<c10::SymIntArrayRef>", "at::OptionalSymIntArrayRef"),
        "c10::OptionalArray<c10::SymInt>",
        "c10::OptionalArray<c10::SymInt>",
        _one("SymInt[]?", "OptionalSymIntList", "Sequence[IntLike] | None"),
        by_value=True,
    ),
    SavedType("floating", ("double",), "double", "double", _one("float", "Double", "float"), by_value=True),
    SavedType(
        "optional_floating",
        ("::std::optional<double>",),
        "std::optional<double>",
        "std::optional<double>",
        _one("float?", "OptionalDouble", "float | None"),
        by_value=True,
    ),
    SavedType("scalar", ("at::Scalar",), "at::Scalar", "at::Scalar", _one("Scalar", "Scalar", "Number")),
    SavedType(
        "optional_scalar",
        ("::std::optional<at::Scalar>",),
        "std::optional<at::Scalar>",
        "std::optional<at::Scalar>",
        _one("Scalar?", "OptionalScalar", "Number | None"),
    ),
    SavedType(
        "scalar_list",
        ("at::ArrayRef<at::Scalar>",),
        "std::vector<at::Scalar>",
        "std::vector<at::Scalar>",
        _one("Scalar[]", "ScalarList", "Sequence[Number]"),
        has_released_flag=True,
    ),
    SavedType(
        "scalar_type",
        ("at::ScalarType",),
        "at::ScalarType",
        "at::ScalarType",
        _one("ScalarType", "ScalarType", "torch.dtype"),
        by_value=True,
    ),
    SavedType(
        "scalar_type_list",
        ("::std::vector<at::ScalarType>",),
        "std::vector<at::ScalarType>",
        "std::vector<at::ScalarType>",
        _one("ScalarType[]", "ScalarTypeList", "Sequence[torch.dtype]"),
    ),
    SavedType(
        "layout",
        ("at::Layout",),
        "at::Layout",
        "at::Layout",
        _one("Layout", "Layout", "torch.layout"),
        by_value=True,
    ),
    SavedType("string", ("c10::string_view",), "std::string", "std::string", _one("str", "String", "str")),
    SavedType(
        "optional_string",
        ("::std::optional<c10::string_view>",),
        "std::optional<std::string>",
        "std::optional<std::string>",
        _one("str?", "OptionalString", "str | None"),
    ),
    SavedType("tensor_options", ("at::TensorOptions",), "at::TensorOptions", "at::TensorOptions", _OPTIONS),
    SavedType(
        "type_and_size",
        ("torch::autograd::generated::TypeAndSize",),
        "TypeAndSize",
        "torch::autograd::TypeAndSize",
        (_SIZES, *_OPTIONS),
    ),
    SavedType(
        "tensor_geometry",
        ("at::TensorGeometry",),
        "at::TensorGeometry",
        "at::TensorGeometry",
        (
            _SIZES,
            Component("_strides", "SymInt[]", "SymIntList", "Sequence[IntLike]"),
            Component("_storage_offset", "SymInt", "SymInt", "IntLike"),
        ),
    ),
    SavedType(
        "integer_lists",
        ("::std::vector<::std::vector<int64_t>>",),
        "std::vector<std::vector<int64_t>>",
        "std::vector<std::vector<int64_t>>",
        (
            Component("_values", "int[]", "IntList", "Sequence[int]"),
            Component("_lengths", "int[]", "IntList", "Sequence[int]"),
        ),
    ),
    SavedType(
        "sym_int_lists",
        ("::std::vector<::std::vector<c10::SymInt>>",),
        "std::vector<std::vector<c10::SymInt>>",
        "std::vector<std::vector<c10::SymInt>>",
        (
            Component("_values", "SymInt[]", "SymIntList", "Sequence[IntLike]"),
            Component("_lengths", "int[]", "IntList", "Sequence[int]"),
        ),
    ),
)

_BY_CTYPE = {ctype: row for row in SAVED_TYPES for ctype in row.ctypes}


def saved_type_of(ctype: str) -> SavedType:
    """The row for a C++ type in the forward.

    Raises:
        UnknownSavedTypeError: no row has this type; the message tells where to add one.
    """
    row = _BY_CTYPE.get(ctype)
    if row is None:
        known = ", ".join(sorted(_BY_CTYPE))
        raise UnknownSavedTypeError(
            f"no row for saved values of type '{ctype}'; add one to codegen/model/saved_types.py with its pack and "
            f"unpack functions in csrc/ivalue (known types: {known})"
        )
    return row
