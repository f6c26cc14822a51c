// Sizes as numbers, for checks that symbols and nested tensors are spared.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace backbind {

inline const char* plural(size_t count) { return count == 1 ? "" : "s"; }

// The sizes, where they are plain numbers and every dimension has one.
inline std::optional<std::vector<int64_t>> plain_sizes(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_nested()) return std::nullopt;
  std::vector<int64_t> sizes;
  for (const c10::SymInt& size : tensor.sym_sizes()) {
    const auto plain = size.maybe_as_int();
    if (!plain) return std::nullopt;
    sizes.push_back(*plain);
  }
  return sizes;
}

inline std::optional<std::vector<int64_t>> plain_sizes(c10::SymIntArrayRef sizes) {
  std::vector<int64_t> plain;
  for (const c10::SymInt& size : sizes) {
    const auto value = size.maybe_as_int();
    if (!value) return std::nullopt;
    plain.push_back(*value);
  }
  return plain;
}

// Products of sizes overflow only for sizes that no tensor has; they then wrap around, as unsigned numbers may.
inline uint64_t product(at::IntArrayRef sizes) {
  uint64_t value = 1;
  for (const int64_t size : sizes) value *= static_cast<uint64_t>(size);
  return value;
}

// How many elements, or nothing where that is not a plain number.
inline std::optional<uint64_t> elements(const at::Tensor& tensor) {
  const auto sizes = plain_sizes(tensor);
  if (!sizes) return std::nullopt;
  return product(*sizes);
}

}  // namespace backbind
