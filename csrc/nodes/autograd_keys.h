// Which of autograd's dispatch keys are left out while formulas run, and when they may be: the whole policy on the side
// of C++. Which of these ways will do for a node is decided by the generator (codegen/model/step_keys.py); whether the
// kernels that are left out are torch's own, by nodes/watched_operators.h.
//
// A backward that builds no graph needs nothing of these keys as long as every tensor is a plain dense one and no mode
// is active in the thread.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <initializer_list>
#include <optional>
#include <utility>

#include "nodes/step.h"

namespace backbind {

// Whether operators may be called below autograd's dispatch keys, as far as the thread decides it: no graph is built,
// no mode is active, and the caller has not left out these keys already, so that leaving them out is for us to do.
bool can_skip_autograd_keys();

// Whether a formula over this tensor gives the same below the autograd keys: dense memory of the CPU, of no subclass,
// in no transform, of real numbers without a pending negation, and not made in inference mode. An undefined tensor is
// as good.
inline bool is_plain_dense(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kPlainDense =
      c10::DispatchKeySet({c10::DispatchKey::CPU, c10::DispatchKey::AutogradCPU, c10::DispatchKey::ADInplaceOrView,
                           c10::DispatchKey::AutocastCPU});
  return !tensor.defined() || (tensor.key_set() == kPlainDense && !tensor.is_complex());
}

// Null stands for a saved tensor that cannot just be read.
inline bool are_plain_dense(std::initializer_list<const at::Tensor*> tensors) {
  for (const at::Tensor* tensor : tensors) {
    if (tensor == nullptr || !is_plain_dense(*tensor)) return false;
  }
  return true;
}

// The keys that the dispatcher leaves out while formulas run, and whether those of autograd are among them.
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
struct BelowADInplaceOrView {
  BelowADInplaceOrView() = default;
  explicit BelowADInplaceOrView(const StepFrame& /*frame*/) {}

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

// Tells the helpers of formulas whether they are called by a step that runs below autograd's keys. Whoever calls
// formulas says so, because nothing else tells it for sure: those keys are left out in inference mode too, and there a
// tracer or a transform may want to see each call.
class StepScope {
 public:
  explicit StepScope(bool is_inside) : before_(std::exchange(is_inside_, is_inside)) {}
  ~StepScope() { is_inside_ = before_; }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

  // Of the innermost scope of this thread.
  static bool is_inside() { return is_inside_; }

 private:
  static inline constinit thread_local bool is_inside_ = false;

  const bool before_;
};

// Inside a step, leaves out the ADInplaceOrView key too: it would give bases and versions to tensors that are gone
// before anybody could ask.
class SkipADInplaceOrView {
 public:
  SkipADInplaceOrView() {
    if (StepScope::is_inside()) guard_.emplace(c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView));
  }

  bool is_active() const { return guard_.has_value(); }

 private:
  std::optional<c10::impl::ExcludeDispatchKeyGuard> guard_;
};

}  // namespace backbind
