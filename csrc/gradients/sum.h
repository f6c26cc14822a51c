// Sums of gradients: what an input buffer holds after another gradient has arrived.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <optional>

namespace backbind {

// On a live graph: adds `gradient` to what the buffer holds. Both are defined. `consumer` is the node that the buffer
// belongs to. The sum may reuse the memory of a gradient that nobody else holds.
void add_to_buffer(at::Tensor& buffer, at::Tensor&& gradient, torch::autograd::Node* consumer);

// The same where no graph is built and nobody watches.
void add_to_buffer_below_autograd(at::Tensor& buffer, at::Tensor&& gradient, torch::autograd::Node* consumer);

// In a graph: what a buffer holds after `gradient` has arrived where `total` was. Undefined counts as zero.
at::Tensor sum_gradients(const std::optional<at::Tensor>& total, const std::optional<at::Tensor>& gradient);

}  // namespace backbind
