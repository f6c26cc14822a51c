// The gradients on their way: one input buffer for each input of each step, which sums what arrives there.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "gradients/sum.h"
#include "plan/plan.h"

namespace backbind {

class InputBuffers {
 public:
  explicit InputBuffers(size_t count) : gradients_(count) {}

  // Adds a gradient to a buffer; an undefined one changes nothing. `consumer` is the node that the buffer belongs to.
  // `below_autograd` tells whether a sum may leave autograd's dispatch keys out.
  void add(size_t buffer, at::Tensor&& gradient, torch::autograd::Node* consumer, bool below_autograd) {
    if (!gradient.defined()) return;
    at::Tensor& here = gradients_[buffer];
    if (!here.defined()) {
      here = std::move(gradient);
    } else if (below_autograd) {
      add_to_buffer_below_autograd(here, std::move(gradient), consumer);
    } else {
      add_to_buffer(here, std::move(gradient), consumer);
    }
  }

  // Takes the gradients of a step out, so that nothing here keeps them alive.
  std::vector<at::Tensor> take(const Step& step) {
    const auto begin = gradients_.begin() + step.first_buffer;
    return {std::make_move_iterator(begin), std::make_move_iterator(begin + step.num_inputs)};
  }

  // The gradients of a step where they lie.
  std::span<at::Tensor> of(const Step& step) { return {gradients_.data() + step.first_buffer, step.num_inputs}; }

 private:
  std::vector<at::Tensor> gradients_;
};

}  // namespace backbind
