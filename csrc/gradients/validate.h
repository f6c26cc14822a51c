// Validation of gradients: what a node computed is brought to the shape, dtype and device of the value that it is the
// gradient of. The engine does so behind each node, for each edge.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/csrc/autograd/function.h>

#include <optional>
#include <span>
#include <vector>

namespace backbind {

// On a live graph, of what a node's own apply gave, which may also be too many or too few. Raises eager's own error
// where a gradient cannot be the gradient of its value.
void validate_grads(torch::autograd::Node& node, std::vector<at::Tensor>& gradients);

// The same where no graph is built and nobody watches, for one gradient for each edge.
void validate_grads_below_autograd(torch::autograd::Node& node, std::span<at::Tensor> gradients);

// Whether these gradients are valid as they are, each for its edge.
bool are_valid_grads(const torch::autograd::edge_list& edges, std::span<const at::Tensor> gradients);

// In a graph, of one gradient: `gradient` as the engine hands it on, summed over the dimensions along which its value
// was broadcast, in the dtype (nothing: any) and, where it has no dimensions, on the device that are expected of it
// (gradients/expected_grad.h). An undefined gradient stays undefined.
//
// Raises RuntimeError where `gradient` cannot be reduced to `sizes`.
at::Tensor validate_grad(const std::optional<at::Tensor>& gradient, c10::SymIntArrayRef sizes,
                         std::optional<at::ScalarType> dtype, std::optional<at::Device> device);

}  // namespace backbind
