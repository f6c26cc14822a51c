// Values on the way to a result, which nobody sees.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/transpose_native.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

namespace backbind::formulas {

// Where the keys of autograd are left out already, leaves out that of in-place operations and views too: it would give
// bases and versions to tensors that are gone before anybody could ask.
class Unseen {
 public:
  Unseen() {
    if (c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradFunctionality)) {
      guard_.emplace(c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView));
    }
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
