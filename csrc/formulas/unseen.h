// Values on the way to a result, which nobody sees.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/transpose_native.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <utility>

namespace backbind::formulas {

// Tells the helpers whether they are called by a step that runs below autograd's keys: of ordinary tensors, without a
// graph, with nobody who watches. Whoever calls formulas says so, because nothing else tells it for sure: those keys
// are left out in inference mode too, and there a tracer or a transform may want to see each call.
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

// Inside a step, leaves out the key of in-place operations and views too: it would give bases and versions to tensors
// that are gone before anybody could ask.
class Unseen {
 public:
  Unseen() {
    if (StepScope::is_inside()) guard_.emplace(c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView));
  }

  // A matrix, transposed. Where nobody sees it, that is another pair of strides on the same memory and nothing more.
  at::Tensor transposed(const at::Tensor& matrix) const {
    return guard_.has_value() ? at::native::transpose(matrix, 0, 1) : matrix.t();
  }

 private:
  std::optional<c10::impl::ExcludeDispatchKeyGuard> guard_;
};

// A real tensor is its own conjugate; to say so here saves a call.
inline at::Tensor conjugate(const at::Tensor& tensor) { return tensor.is_complex() ? tensor.conj() : tensor; }

}  // namespace backbind::formulas
