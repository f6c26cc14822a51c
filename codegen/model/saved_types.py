"""How a saved value of each type behaves: the one table that every emitter asks.

A row says where the value comes from (its C++ type in the forward), where the node struct keeps it, how C++
passes it, and which arguments of an operator schema carry it. A type without a row is an error: there is no default.
What an operator's schema, its stub, its documentation and its errors say of an argument follows from its component.
C++ needs one thing besides for a new type: a Codec in ``csrc/ivalue/codecs.cpp``, which writes and reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

_ANNOTATIONS = {
    "Tensor": "Tensor",
    "bool": "bool",
    "int": "int",
    "SymInt": "IntLike",
    "float": "float",
    "Scalar": "Number",
    "ScalarType": "torch.dtype",
    "Layout": "torch.layout",
    "Device": "torch.device",
    "str": "str",
}
"""The types of operator schemas that are neither optional nor lists, and what they are in Python. In C++ each is an
enumerator of ``backbind::ElementKind`` (csrc/ivalue/value_kind.h)."""

_FORMS = {
    "": ("kOne", "{}"),
    "?": ("kOptional", "{} | None"),
    "[]": ("kList", "Sequence[{}]"),
    "[]?": ("kOptionalList", "Sequence[{}] | None"),
    "?[]": ("kListOfOptional", "Sequence[{} | None]"),
}
"""What may follow such a type: the enumerator of ``backbind::Form``, and the form in Python."""


@dataclass(frozen=True)
class Component:
    """One schema argument of a saved value; most values have one, composite values several."""

    suffix: str
    """Appended to the saved value's name; empty for the only component: ``_sizes``."""
    schema: str
    """The type in an operator schema: ``SymInt[]``."""

    @property
    def kind(self) -> str:
        """The ``backbind::ValueKind`` that tells how Python objects become this argument.

        >>> Component("", "SymInt[]?").kind
        '{ElementKind::kSymInt, Form::kOptionalList}'
        """
        element, (form, _) = self._split()
        return f"{{ElementKind::k{element[0].upper()}{element[1:]}, Form::{form}}}"

    @property
    def annotation(self) -> str:
        """The type in Python.

        >>> Component("", "SymInt[]?").annotation
        'Sequence[IntLike] | None'
        """
        element, (_, form) = self._split()
        return form.format(_ANNOTATIONS[element])

    def _split(self) -> tuple[str, tuple[str, str]]:
        element = self.schema.rstrip("?[]")
        return element, _FORMS[self.schema.removeprefix(element)]


@dataclass(frozen=True)
class SavedType:
    """One row of the table."""

    key: str
    """Names the row: ``sym_int_list``."""
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
    def has_optional_elements(self) -> bool:
        """Whether elements may be missing in the list."""
        return self.components[0].schema.endswith("?[]")

    @property
    def parameter(self) -> str:
        """The type of a C++ parameter."""
        return self.value if self.by_value else f"const {self.value}&"


class UnknownSavedTypeError(Exception):
    """A saved value has a type that the table does not know."""


def _one(schema: str) -> tuple[Component, ...]:
    return (Component("", schema),)


_OPTIONS = (
    Component("_dtype", "ScalarType?"),
    Component("_layout", "Layout?"),
    Component("_device", "Device?"),
    Component("_pin_memory", "bool?"),
)
_SIZES = Component("_sizes", "SymInt[]")

SAVED_TYPES: tuple[SavedType, ...] = (
    SavedType(
        "tensor",
        ("at::Tensor", "::std::optional<at::Tensor>"),
        "SavedVariable",
        "at::Tensor",
        _one("Tensor?"),
        is_tensor=True,
    ),
    SavedType(
        "tensor_list",
        ("at::TensorList", "::std::vector<at::Tensor>"),
        "std::vector<SavedVariable>",
        "std::vector<at::Tensor>",
        _one("Tensor[]"),
        is_tensor=True,
        is_list=True,
        has_released_flag=True,
    ),
    SavedType(
        "optional_tensor_list",
        ("c10::List<::std::optional<at::Tensor>>",),
        "std::vector<SavedVariable>",
        "c10::List<std::optional<at::Tensor>>",
        _one("Tensor?[]"),
        is_tensor=True,
        is_list=True,
        has_released_flag=True,
    ),
    SavedType("boolean", ("bool",), "bool", "bool", _one("bool"), by_value=True),
    SavedType(
        "optional_boolean",
        ("::std::optional<bool>",),
        "std::optional<bool>",
        "std::optional<bool>",
        _one("bool?"),
        by_value=True,
    ),
    SavedType("integer", ("int64_t",), "int64_t", "int64_t", _one("int"), by_value=True),
    SavedType(
        "optional_integer",
        ("::std::optional<int64_t>",),
        "std::optional<int64_t>",
        "std::optional<int64_t>",
        _one("int?"),
        by_value=True,
    ),
    SavedType("list_size", ("size_t",), "size_t", "size_t", _one("int"), by_value=True),
    SavedType(
        "integer_list",
        ("at::IntArrayRef",),
        "std::vector<int64_t>",
        "std::vector<int64_t>",
        _one("int[]"),
    ),
    SavedType(
        "optional_integer_list",
        ("at::OptionalIntArrayRef", "::std::optional<at::IntArrayRef>"),
        "c10::OptionalArray<int64_t>",
        "c10::OptionalArray<int64_t>",
        _one("int[]?"),
        by_value=True,
    ),
    SavedType("sym_int", ("c10::SymInt",), "c10::SymInt", "c10::SymInt", _one("SymInt")),
    SavedType(
        "optional_sym_int",
        ("::std::optional<c10::SymInt>",),
        "std::optional<c10::SymInt>",
        "std::optional<c10::SymInt>",
        _one("SymInt?"),
    ),
    SavedType(
        "sym_int_list",
        ("c10::SymIntArrayRef",),
        "std::vector<c10::SymInt>",
        "std::vector<c10::SymInt>",
        _one("SymInt[]"),
    ),
    SavedType(
        "optional_sym_int_list",
        ("::std::optional<c10::SymIntArrayRef>", "at::OptionalSymIntArrayRef"),
        "c10::OptionalArray<c10::SymInt>",
        "c10::OptionalArray<c10::SymInt>",
        _one("SymInt[]?"),
        by_value=True,
    ),
    SavedType("floating", ("double",), "double", "double", _one("float"), by_value=True),
    SavedType(
        "optional_floating",
        ("::std::optional<double>",),
        "std::optional<double>",
        "std::optional<double>",
        _one("float?"),
        by_value=True,
    ),
    SavedType("scalar", ("at::Scalar",), "at::Scalar", "at::Scalar", _one("Scalar")),
    SavedType(
        "optional_scalar",
        ("::std::optional<at::Scalar>",),
        "std::optional<at::Scalar>",
        "std::optional<at::Scalar>",
        _one("Scalar?"),
    ),
    SavedType(
        "scalar_list",
        ("at::ArrayRef<at::Scalar>",),
        "std::vector<at::Scalar>",
        "std::vector<at::Scalar>",
        _one("Scalar[]"),
        has_released_flag=True,
    ),
    SavedType(
        "scalar_type",
        ("at::ScalarType",),
        "at::ScalarType",
        "at::ScalarType",
        _one("ScalarType"),
        by_value=True,
    ),
    SavedType(
        "scalar_type_list",
        ("::std::vector<at::ScalarType>",),
        "std::vector<at::ScalarType>",
        "std::vector<at::ScalarType>",
        _one("ScalarType[]"),
    ),
    SavedType(
        "layout",
        ("at::Layout",),
        "at::Layout",
        "at::Layout",
        _one("Layout"),
        by_value=True,
    ),
    SavedType("string", ("c10::string_view",), "std::string", "std::string", _one("str")),
    SavedType(
        "optional_string",
        ("::std::optional<c10::string_view>",),
        "std::optional<std::string>",
        "std::optional<std::string>",
        _one("str?"),
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
            Component("_strides", "SymInt[]"),
            Component("_storage_offset", "SymInt"),
        ),
    ),
    SavedType(
        "integer_lists",
        ("::std::vector<::std::vector<int64_t>>",),
        "std::vector<std::vector<int64_t>>",
        "std::vector<std::vector<int64_t>>",
        (
            Component("_values", "int[]"),
            Component("_lengths", "int[]"),
        ),
    ),
    SavedType(
        "sym_int_lists",
        ("::std::vector<::std::vector<c10::SymInt>>",),
        "std::vector<std::vector<c10::SymInt>>",
        "std::vector<std::vector<c10::SymInt>>",
        (
            Component("_values", "SymInt[]"),
            Component("_lengths", "int[]"),
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
