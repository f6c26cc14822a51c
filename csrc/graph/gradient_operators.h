// The operators of a backward graph that belong to no node: what the engine does between nodes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include <optional>

namespace backbind {

// Defines them in the dispatcher, once for the process:
//   root_gradient(Tensor? given, Tensor implicit) -> Tensor
//   sum_gradients(Tensor? total, Tensor? gradient) -> Tensor
//   fit_gradient(Tensor? gradient, SymInt[] sizes, ScalarType dtype) -> Tensor
void register_gradient_operators();

// The gradient with which a scalar output starts: `implicit`, unless one is given.
at::Tensor root_gradient(const std::optional<at::Tensor>& given, const at::Tensor& implicit);

// What a slot holds after `gradient` has arrived at a slot that held `total`. Undefined counts as zero.
at::Tensor sum_gradients(const std::optional<at::Tensor>& total, const std::optional<at::Tensor>& gradient);

// `gradient`, summed over the dimensions along which its value was broadcast, and in its value's dtype. An undefined
// gradient stays undefined.
//
// Raises RuntimeError where `gradient` cannot be reduced to `sizes`.
at::Tensor fit_gradient(const std::optional<at::Tensor>& gradient, c10::SymIntArrayRef sizes, at::ScalarType dtype);

}  // namespace backbind
