// The operators of a backward graph that belong to no node: what the engine does before the first node and between
// nodes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/SymIntArrayRef.h>

#include <optional>

namespace backbind {

// Defines them in the dispatcher, once for the process:
//   root_gradient(Tensor? given, Tensor? implicit, SymInt[]? sizes, ScalarType dtype, int output) -> Tensor
//   sum_gradients(Tensor? total, Tensor? gradient) -> Tensor
//   validate_grad(Tensor? gradient, SymInt[] sizes, ScalarType? dtype, Device? device=None) -> Tensor
void register_gradient_operators();

// The gradient with which output number `output`, of these sizes and this dtype, starts: `given`, or `implicit` where
// none is given. `sizes` is nothing for a nested tensor, whose sizes are not compared.
//
// Raises RuntimeError, with the text of torch.autograd.grad, where neither is there or `given` is no gradient of such
// an output.
at::Tensor root_gradient(const std::optional<at::Tensor>& given, const std::optional<at::Tensor>& implicit,
                         at::OptionalSymIntArrayRef sizes, at::ScalarType dtype, int64_t output);

// What an input buffer holds after `gradient` has arrived where `total` was. Undefined counts as zero.
at::Tensor sum_gradients(const std::optional<at::Tensor>& total, const std::optional<at::Tensor>& gradient);

// `gradient` as the engine hands it on: summed over the dimensions along which its value was broadcast, in the dtype
// (nothing: any) and, where it has no dimensions, on the device that are expected of it. An undefined gradient stays
// undefined.
//
// Raises RuntimeError where `gradient` cannot be reduced to `sizes`.
at::Tensor validate_grad(const std::optional<at::Tensor>& gradient, c10::SymIntArrayRef sizes,
                         std::optional<at::ScalarType> dtype, std::optional<at::Device> device);

}  // namespace backbind
