// Saved values -> IValues.
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
  kLeave,  // the hook is not called, and PackWriter::unpacked_later() stands for what it would give
};

class PackWriter {
 public:
  // Reads saved values off `node`. `needed`, where given, tells for each edge of the node whether its gradient is
  // needed; otherwise every valid edge's is. Both must outlive the writer.
  explicit PackWriter(torch::autograd::Node& node, const std::vector<bool>* needed = nullptr,
                      UnpackHooks unpack_hooks = UnpackHooks::kCall)
      : node_(node), needed_(needed), unpack_hooks_(unpack_hooks) {}

  // A tensor that is like no other, to be told by its identity. It has no values.
  static const at::Tensor& unpacked_later();

  // Writes which inputs need a gradient. `edges` tells how many edges of the node belong to each input: one, or the
  // length of a list. An input needs a gradient if any of its edges leads somewhere.
  void needs_input_grad(std::initializer_list<size_t> edges);

  void write(const torch::autograd::SavedVariable& value);
  void write_list(const std::vector<torch::autograd::SavedVariable>& value, bool released);
  void write_optional_list(const std::vector<torch::autograd::SavedVariable>& value, bool released);
  // Every other type (codecs.cpp).
  template <class T>
  void write(const T& value);

  // The IValues written so far: needs_input_grad, then the arguments of the schema in order.
  std::vector<c10::IValue> take() { return std::move(values_); }

 private:
  void check_not_released(bool released) const;

  bool edge_needed(size_t edge) const;

  at::Tensor unpacked(const torch::autograd::SavedVariable& value);

  torch::autograd::Node& node_;
  const std::vector<bool>* needed_;
  UnpackHooks unpack_hooks_;
  std::vector<c10::IValue> values_;
};

}  // namespace backbind
