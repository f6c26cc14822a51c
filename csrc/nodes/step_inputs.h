// What steps of nodes that take or saved lists hand to their formulas.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace backbind {

// Reads which inputs need a gradient off the flags of a node's edges, input by input in their order.
class EdgeFlags {
 public:
  explicit EdgeFlags(std::span<const uint8_t> needs_input_grad) : rest_(needs_input_grad) {}

  // An input that is one tensor.
  bool one() { return list(1); }
  // An input that is a list: its formula is for all of them, so it runs if any needs a gradient.
  bool list(size_t size);

 private:
  std::span<const uint8_t> rest_;
};

// The tensors of a saved list, or nothing where one cannot just be read or is not plain and dense. A List is one of
// tensors that may be missing, or a vector.
template <class List>
std::optional<List> saved_list(const std::vector<torch::autograd::SavedVariable>& saved, bool is_released);

}  // namespace backbind
