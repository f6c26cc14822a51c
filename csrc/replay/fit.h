// Brings the gradients that a node computed to the shape, dtype and device of the values that they are gradients of.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <span>
#include <vector>

namespace backbind {

// Both raise eager's own error where a gradient cannot be the gradient of its value. What a node's own apply gave may
// also be too many or too few.
void fit_gradients(torch::autograd::Node& node, std::vector<at::Tensor>& gradients);
void fit_gradients(torch::autograd::Node& node, std::span<at::Tensor> gradients);

}  // namespace backbind
