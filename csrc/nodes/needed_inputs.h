// Saved inputs whose formula asks whether they require grad.
//
// A live node's saved input requires grad if its gradient is needed: the forward saw to that. A formula may therefore
// ask the tensor instead of the node. An operator is given saved values in any state, and needs_input_grad alone
// decides.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>

namespace backbind {

// Gives saved inputs the state that the forward would have given them, for one call of a functional backward.
class NeededInputs {
 public:
  NeededInputs();

  // The value itself, where its gradient is not needed or it requires grad; otherwise a stand-in on the same memory
  // that requires grad. Nothing is ever computed for the stand-in.
  at::Tensor input(const at::Tensor& value, bool needed);

  // What the functional backward gave: where stand-ins alone made a gradient require grad, it does so no longer.
  torch::autograd::variable_list gradients(torch::autograd::variable_list&& gradients) const;

 private:
  bool has_stand_ins_ = false;
  uint64_t first_;  // the sequence number of the first node that is made from here on
};

}  // namespace backbind
