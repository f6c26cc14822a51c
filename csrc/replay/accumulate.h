// Adding a gradient to that of a leaf, where it is as simple as it mostly is.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

namespace backbind {

// Does what the AccumulateGrad `node` would do with `gradient`, and takes it: hands it to a leaf that has none, or adds
// it in place. Returns false, and has done nothing, where more than that is to be decided: hooks, copies, layouts, any
// tensor that is no plain dense one. No graph is being built and no mode is active.
bool accumulate(torch::autograd::Node& node, at::Tensor& gradient);

}  // namespace backbind
