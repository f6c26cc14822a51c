// The types of operator arguments that carry saved values, as data: `SymInt[]?` is an optional list of SymInt.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace backbind {

// The types of operator schemas that are neither optional nor lists.
enum class ElementKind : uint8_t {
  kTensor,
  kBool,
  kInt,
  kSymInt,
  kFloat,
  kScalar,
  kScalarType,
  kLayout,
  kDevice,
  kStr,
};

// What a user may give for each, in the order of the enumerators. A symbolic size goes through the dispatcher.
inline constexpr std::array<const char*, 10> kElementDescriptions = {
    "Tensor",      "bool",         "int",          "int", "float", "int | float | complex | bool",
    "torch.dtype", "torch.layout", "torch.device", "str",
};

enum class Form : uint8_t {
  kOne,             // T
  kOptional,        // T?
  kList,            // T[]
  kOptionalList,    // T[]?
  kListOfOptional,  // T?[]
};

struct ValueKind {
  ElementKind element;
  Form form;
};

// How a kind is called in messages: "Sequence[Tensor | None]".
inline std::string describe(ValueKind kind) {
  const std::string element = kElementDescriptions[static_cast<size_t>(kind.element)];
  switch (kind.form) {
    case Form::kOne:
      return element;
    case Form::kOptional:
      return element + " | None";
    case Form::kList:
      return "Sequence[" + element + "]";
    case Form::kOptionalList:
      return "Sequence[" + element + "] | None";
    case Form::kListOfOptional:
      return "Sequence[" + element + " | None]";
  }
  return element;
}

}  // namespace backbind
