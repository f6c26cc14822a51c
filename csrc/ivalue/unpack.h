// IValues -> saved values.
//
// The kinds of the IValues are the caller's duty (the dispatcher checks them against the schema, the Python call path
// builds them from it); what a value must additionally satisfy is checked here and raises ValueError.
#pragma once

#include <ATen/TensorGeometry.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/function.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace backbind {

// Reads arguments in order. `node` names the operator in error messages and must outlive the reader.
class ArgumentReader {
 public:
  ArgumentReader(const char* node, const std::vector<c10::IValue>& values, size_t expected);

  // Which gradients are wanted: a list of flags, or their bits in an integer, which saves the Python call path a list.
  template <size_t N>
  std::array<bool, N> needs_input_grad() {
    static_assert(N < 64);
    std::array<bool, N> needed{};
    read_mask(needed.data(), N);
    return needed;
  }

  // The next value, of as many arguments as its type takes (codecs.cpp).
  template <class T>
  T read();

  const char* node() const { return node_; }
  const c10::IValue& peek() const { return *next_; }
  const c10::IValue& next() { return *next_++; }

 private:
  void read_mask(bool* needed, size_t count);

  const char* node_;
  const c10::IValue* next_;
};

}  // namespace backbind
