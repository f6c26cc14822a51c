// Saved value -> IValues: one function for each row of the type table in codegen/model/saved_types.py.
//
// Saved tensors are unpacked as the engine would unpack them, so a released or overwritten one raises eager's error.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace backbind {

// What is done about a saved tensor that has a hook which unpacks it: a user's code.
enum class UnpackHooks {
  kCall,
  kLeave,  // the hook is not called, and an undefined tensor stands for what it would give
};

class PackWriter {
 public:
  // Reads saved values off `node`. `needed`, where given, tells for each edge of the node whether its gradient is
  // needed; otherwise every valid edge's is. Both must outlive the writer.
  explicit PackWriter(torch::autograd::Node& node, const std::vector<bool>* needed = nullptr,
                      UnpackHooks unpack_hooks = UnpackHooks::kCall)
      : node_(node), needed_(needed), unpack_hooks_(unpack_hooks) {}

  // Whether any saved tensor that was written has such a hook.
  bool has_unpack_hooks() const { return has_unpack_hooks_; }

  // Writes which inputs need a gradient. `edges` tells how many edges of the node belong to each input: one, or the
  // length of a list. An input needs a gradient if any of its edges leads somewhere.
  void needs_input_grad(std::initializer_list<size_t> edges);

  void tensor(const torch::autograd::SavedVariable& value);
  void tensor_list(const std::vector<torch::autograd::SavedVariable>& value, bool released);
  void optional_tensor_list(const std::vector<torch::autograd::SavedVariable>& value, bool released);
  void boolean(bool value);
  void optional_boolean(std::optional<bool> value);
  void integer(int64_t value);
  void optional_integer(std::optional<int64_t> value);
  void list_size(size_t value);
  void integer_list(const std::vector<int64_t>& value);
  void optional_integer_list(const c10::OptionalArray<int64_t>& value);
  void sym_int(const c10::SymInt& value);
  void optional_sym_int(const std::optional<c10::SymInt>& value);
  void sym_int_list(const std::vector<c10::SymInt>& value);
  void optional_sym_int_list(const c10::OptionalArray<c10::SymInt>& value);
  void floating(double value);
  void optional_floating(std::optional<double> value);
  void scalar(const at::Scalar& value);
  void optional_scalar(const std::optional<at::Scalar>& value);
  void scalar_list(const std::vector<at::Scalar>& value);
  void scalar_type(at::ScalarType value);
  void scalar_type_list(const std::vector<at::ScalarType>& value);
  void layout(at::Layout value);
  void string(const std::string& value);
  void optional_string(const std::optional<std::string>& value);
  void tensor_options(const at::TensorOptions& value);
  void type_and_size(const torch::autograd::TypeAndSize& value);
  void tensor_geometry(const at::TensorGeometry& value);
  void integer_lists(const std::vector<std::vector<int64_t>>& value);
  void sym_int_lists(const std::vector<std::vector<c10::SymInt>>& value);

  // The IValues written so far: needs_input_grad, then the arguments of the schema in order.
  std::vector<c10::IValue> take() { return std::move(values_); }

 private:
  void check_not_released(bool released) const;

  bool edge_needed(size_t edge) const;

  at::Tensor unpacked(const torch::autograd::SavedVariable& value);

  torch::autograd::Node& node_;
  const std::vector<bool>* needed_;
  UnpackHooks unpack_hooks_;
  bool has_unpack_hooks_ = false;
  std::vector<c10::IValue> values_;
};

}  // namespace backbind
