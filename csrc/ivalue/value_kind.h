// The kinds of operator arguments that carry saved values: one for each type that a functional schema may name.
#pragma once

#include <cstdint>

namespace backbind {

enum class ValueKind : uint8_t {
  OptionalTensor,
  TensorList,
  OptionalTensorList,
  Bool,
  OptionalBool,
  Int,
  OptionalInt,
  IntList,
  OptionalIntList,
  SymInt,
  OptionalSymInt,
  SymIntList,
  OptionalSymIntList,
  Double,
  OptionalDouble,
  Scalar,
  OptionalScalar,
  ScalarList,
  ScalarType,
  OptionalScalarType,
  ScalarTypeList,
  Layout,
  OptionalLayout,
  OptionalDevice,
  String,
  OptionalString,
};

}  // namespace backbind
