// Brings the gradients that a node computed to the shape, dtype and device of the values that they are gradients of.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <span>
#include <vector>

namespace backbind {

// Of what a node's own apply gave, which may also be too many or too few. Raises eager's own error where a gradient
// cannot be the gradient of its value.
void fit_gradients(torch::autograd::Node& node, std::vector<at::Tensor>& gradients);

// The same where no graph is built and nobody watches, for one gradient for each edge.
void fit_gradients_unwatched(torch::autograd::Node& node, std::span<at::Tensor> gradients);

}  // namespace backbind
