// What happens in a backward, as data: the operations of each step in the engine's order. Every backend works from it:
// replay executes it on live nodes, a graph is printed from it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace backbind {

enum class OperationKind : uint8_t {
  // Hooks on the tensors whose gradients come in (tensor_pre_hooks), then those that retain them (retains_grad_hooks).
  kTensorPreHooks,
  kRetainGrad,
  // What came in at one input is a result of the backward. `operand`: which of the step's returned gradients.
  kReturnGrad,
  // Hooks before the node (pre_hooks).
  kPreHooks,
  // Call the node, or add what came in to its leaf where it is an AccumulateGrad.
  kCall,
  kAccumulate,
  // Bring what the node computed for each edge to the shape, dtype and device that the edge expects.
  kValidateGrads,
  // Hooks behind the node (post_hooks).
  kPostHooks,
  // Let go of what came in, and free the saved values unless the graph is retained.
  kRelease,
  // Add what was computed for one edge to the input buffer that the edge leads to. `operand`: which edge of the step.
  kAddToBuffer,
};

// The name of each kind, in the order of the enumerators.
inline constexpr std::array<const char*, 10> kOperationNames = {
    "tensor_pre_hooks", "retain_grad",    "return_grad", "pre_hooks", "call",
    "accumulate",       "validate_grads", "post_hooks",  "release",   "add_to_buffer",
};

struct Operation {
  OperationKind kind;
  // Relative to the step, so that steps alike share their operations.
  uint32_t operand = 0;

  bool operator==(const Operation&) const = default;
};

// Before the first step, the gradient of each root is added to its buffer; behind the last one, the final callbacks are
// called.
class Lowering {
 public:
  explicit Lowering(const Plan& plan);

  std::span<const Operation> operations_of(size_t step) const {
    const Range& range = ranges_[range_of_step_[step]];
    return {operations_.data() + range.first, range.count};
  }

  // What the lowering takes of memory.
  size_t bytes() const;

 private:
  struct Range {
    uint32_t first;
    uint32_t count;
  };

  std::vector<Operation> operations_;
  std::vector<Range> ranges_;
  // A position in `ranges_` for each step.
  std::vector<uint32_t> range_of_step_;
};

}  // namespace backbind
