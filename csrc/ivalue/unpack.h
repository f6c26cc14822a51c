// IValues -> saved values: one function for each row of the type table in codegen/model/saved_types.py.
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

  at::Tensor tensor();
  std::vector<at::Tensor> tensor_list();
  c10::List<std::optional<at::Tensor>> optional_tensor_list();
  bool boolean();
  std::optional<bool> optional_boolean();
  int64_t integer();
  std::optional<int64_t> optional_integer();
  size_t list_size();
  std::vector<int64_t> integer_list();
  c10::OptionalArray<int64_t> optional_integer_list();
  c10::SymInt sym_int();
  std::optional<c10::SymInt> optional_sym_int();
  std::vector<c10::SymInt> sym_int_list();
  c10::OptionalArray<c10::SymInt> optional_sym_int_list();
  double floating();
  std::optional<double> optional_floating();
  at::Scalar scalar();
  std::optional<at::Scalar> optional_scalar();
  std::vector<at::Scalar> scalar_list();
  at::ScalarType scalar_type();
  std::vector<at::ScalarType> scalar_type_list();
  at::Layout layout();
  std::string string();
  std::optional<std::string> optional_string();
  at::TensorOptions tensor_options();
  torch::autograd::TypeAndSize type_and_size();
  at::TensorGeometry tensor_geometry();
  std::vector<std::vector<int64_t>> integer_lists();
  std::vector<std::vector<c10::SymInt>> sym_int_lists();

 private:
  const c10::IValue& next() { return *next_++; }
  void read_mask(bool* needed, size_t count);
  at::ScalarType checked_scalar_type(int64_t number) const;
  at::Layout checked_layout(int64_t number) const;

  const char* node_;
  const c10::IValue* next_;
};

}  // namespace backbind
