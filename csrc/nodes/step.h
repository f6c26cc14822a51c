// Running a live node without the autograd engine's and the dispatcher's care for things that are not there: no graph
// is built, every tensor is an ordinary one, nobody watches.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "torch_private.h"

namespace backbind {

// What one run of a node reads and writes besides its saved values.
struct StepFrame {
  std::span<const at::Tensor> gradients;  // one for each result of the forward
  std::span<const uint8_t> wanted;        // for each edge, whether its gradient is
  std::span<at::Tensor> results;          // one for each edge; undefined before
};

// Runs a live node that grad mode, dispatch modes and transforms leave alone, below the autograd keys. Returns false,
// and has done nothing, where it is not as simple as that: hooks on saved tensors, tensors out of the ordinary.
//
// Raises what the node's own apply would raise.
using StepFunction = bool (*)(torch::autograd::Node& node, const StepFrame& frame);

// Whether a formula over this tensor gives the same below the autograd keys: dense memory of the CPU, of no subclass,
// in no transform, of real numbers without a pending negation, and not made in inference mode. An undefined tensor is
// as good.
inline bool is_ordinary(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kOrdinary =
      c10::DispatchKeySet({c10::DispatchKey::CPU, c10::DispatchKey::AutogradCPU, c10::DispatchKey::ADInplaceOrView,
                           c10::DispatchKey::AutocastCPU});
  return !tensor.defined() || (tensor.key_set() == kOrdinary && !tensor.is_complex());
}

// Null stands for a saved tensor that cannot just be read.
inline bool are_ordinary(std::initializer_list<const at::Tensor*> tensors) {
  for (const at::Tensor* tensor : tensors) {
    if (tensor == nullptr || !is_ordinary(*tensor)) return false;
  }
  return true;
}

// The keys that the dispatcher leaves out while formulas run (codegen/model/step_keys.py says where which will do), and
// whether those of autograd are among them.
struct AllKeys {
  explicit AllKeys(const StepFrame& /*frame*/) {}

  bool leave_out_autograd() const { return false; }
};
struct BelowAutograd {
  BelowAutograd() = default;
  explicit BelowAutograd(const StepFrame& /*frame*/) {}

  bool leave_out_autograd() const { return true; }

  at::AutoDispatchBelowAutograd keys;
};
struct BelowViews {
  BelowViews() = default;
  explicit BelowViews(const StepFrame& /*frame*/) {}

  bool leave_out_autograd() const { return true; }

  at::AutoDispatchBelowADInplaceOrView keys;
};
// Autograd's keys are left out if the gradients lie in memory in order, so that reshaping one makes a view of it.
struct BelowAutogradIfContiguous {
  explicit BelowAutogradIfContiguous(const StepFrame& frame) {
    for (const at::Tensor& gradient : frame.gradients) {
      if (gradient.defined() && !gradient.is_contiguous()) return;
    }
    keys.emplace();
  }

  bool leave_out_autograd() const { return keys.has_value(); }

  std::optional<at::AutoDispatchBelowAutograd> keys;
};

}  // namespace backbind
