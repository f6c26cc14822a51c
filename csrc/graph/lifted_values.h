// The values of a live graph that a printed graph needs: read off the nodes, told apart into what is given to it at
// each run and what may be baked in.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/flat_hash_map.h>

#include <optional>
#include <vector>

#include "hooks/node_hooks.h"
#include "ivalue/value_kind.h"
#include "nodes/binding.h"
#include "plan/facts.h"
#include "plan/plan.h"
#include "plan/request.h"

namespace backbind {

// What is known of a step before it runs, beside its plan.
struct StepCode {
  HookSet hooks;
  // How many of its saved tensors have hooks that unpack them.
  uint32_t unpack_count = 0;
  // Whether the live node has to be called, because no binding knows it.
  bool is_opaque = false;
  // Of an AccumulateGrad: the dtype that its leaf wants for its gradient; nothing where any will do.
  std::optional<at::ScalarType> leaf_grad_dtype;

  // Whether it runs code of a user, or code that nobody knows.
  bool is_foreign() const { return is_opaque || unpack_count > 0 || !hooks.empty(); }
};

struct LiftedValues {
  // Every tensor once: the gradients of the outputs, then leaves and saved tensors as they are met.
  std::vector<at::Tensor> tensors;
  Facts facts;
  // Which of them stands at each place where there is one, in the order in which places are read; kUnpackedLater for
  // one that is unpacked when its step runs.
  std::vector<int64_t> tensor_order;
  static constexpr int64_t kUnpackedLater = -2;
  // For each step.
  std::vector<StepCode> code;
};

// Reads the values of one backward. Nothing of a user is called: saved tensors with hooks are left packed.
//
// Raises RuntimeError where a saved tensor was freed or changed in place, or where a leaf is no longer what it was.
LiftedValues lift_values(const Plan& plan, const LiveNodes& nodes, const Request& request,
                         FactPlaces* places = nullptr);

// What is needed for which edge of a step, as a list.
std::vector<bool> needed_edges(const Plan& plan, const Step& step);

// Whether it is still the leaf that the node accumulates into: a leaf may stop wanting a gradient, or become a result.
bool is_leaf_of(const at::Tensor& variable, const torch::autograd::Node& accumulator);

// Whether the plan alone tells what the node's gradients are validated against: it has an operator. Opaque nodes
// validate what they give when they are called.
inline bool has_operator(const Step& step) { return step.runs && step.binding != nullptr; }

}  // namespace backbind
