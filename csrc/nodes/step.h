// Running a live node by its formulas, without the node's own call.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <span>

#include "torch_private.h"

namespace backbind {

// What one run of a node reads and writes besides its saved values.
struct StepFrame {
  std::span<const at::Tensor> gradients;      // one for each result of the forward
  std::span<const uint8_t> needs_input_grad;  // one for each edge
  std::span<at::Tensor> results;              // one for each edge; undefined before
};

// Runs a live node that grad mode, dispatch modes and transforms leave alone, below the autograd keys
// (nodes/autograd_keys.h). Returns false, and has done nothing, where it is not as simple as that: hooks on saved
// tensors, tensors that are not plain dense ones.
//
// Raises what the node's own apply would raise.
using StepFunction = bool (*)(torch::autograd::Node& node, const StepFrame& frame);

}  // namespace backbind
