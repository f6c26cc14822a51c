// Values on the way to the result of a formula, which nobody sees.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/transpose_native.h>

#include "nodes/autograd_keys.h"

namespace backbind::formulas {

// A matrix, transposed. Where nobody sees it, that is another pair of strides on the same memory and nothing more.
inline at::Tensor transposed(const at::Tensor& matrix, const SkipADInplaceOrView& keys) {
  return keys.is_active() ? at::native::transpose(matrix, 0, 1) : matrix.t();
}

// A real tensor is its own conjugate; to say so here saves a call.
inline at::Tensor conjugate(const at::Tensor& tensor) { return tensor.is_complex() ? tensor.conj() : tensor; }

}  // namespace backbind::formulas
