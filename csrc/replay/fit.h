// Brings the gradients that a node computed to the shape, dtype and device of the values that they are gradients of.
#pragma once

#include <torch/csrc/autograd/function.h>

namespace backbind {

// Raises eager's own error where a gradient cannot be the gradient of its value.
void fit_gradients(torch::autograd::Node& node, std::vector<at::Tensor>& gradients);

}  // namespace backbind
