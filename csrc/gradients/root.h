// The gradients that a backward begins with.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace backbind {

// In a graph: the gradient with which output number `output`, of these sizes and this dtype, starts: `given`, or
// `implicit` where none is given. `sizes` is nothing for a nested tensor, whose sizes are not compared. (On a live
// graph torch has done this before the engine runs.)
//
// Raises RuntimeError, with the text of torch.autograd.grad, where neither is there or `given` is no gradient of such
// an output.
at::Tensor root_gradient(const std::optional<at::Tensor>& given, const std::optional<at::Tensor>& implicit,
                         at::OptionalSymIntArrayRef sizes, at::ScalarType dtype, int64_t output);

}  // namespace backbind
