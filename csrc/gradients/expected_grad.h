// What the engine expects of a gradient that arrives at an input of a node: the shape, dtype and device with which it
// goes on from there, whatever the node before computed.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <c10/core/SymInt.h>
#include <torch/csrc/autograd/function.h>

#include <optional>
#include <vector>

namespace backbind {

struct ExpectedGrad {
  std::vector<c10::SymInt> sizes;
  // Nothing where any dtype will do, as a leaf may say by its grad_dtype.
  std::optional<at::ScalarType> dtype;
  // Given only where the gradient may come from another device, so that a graph can be moved: the engine moves
  // gradients without dimensions alone.
  std::optional<at::Device> device;
};

// What is expected of the gradient that `source` (null for the gradient of an output) sends to an input with this
// metadata. Nothing where the engine expects nothing, or where the shape cannot be told in numbers (a nested tensor
// that was made in C++).
std::optional<ExpectedGrad> expected_grad(const torch::autograd::InputMetadata& metadata,
                                          const torch::autograd::Node* source);

}  // namespace backbind
