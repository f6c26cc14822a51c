// The gradients on their way: one place for each input of each step, which sums what arrives there.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <span>
#include <vector>

#include "capture/plan.h"

namespace backbind {

using torch::autograd::variable_list;

class Slots {
 public:
  explicit Slots(size_t count) : gradients_(count) {}

  // Puts a gradient into its slot; an undefined one changes nothing. `consumer` is the node that the slot belongs to.
  // `is_watched` tells whether a graph is built, or somebody wants to see what operators are called for a sum.
  void add(size_t slot, at::Tensor&& gradient, torch::autograd::Node* consumer, bool is_watched) {
    if (!gradient.defined()) return;
    at::Tensor& here = gradients_[slot];
    if (!here.defined()) {
      here = std::move(gradient);
    } else {
      sum(here, std::move(gradient), consumer, is_watched);
    }
  }

  // Takes the gradients of a step out, so that nothing here keeps them alive.
  variable_list take(const Step& step) {
    const auto begin = gradients_.begin() + step.first_slot;
    return {std::make_move_iterator(begin), std::make_move_iterator(begin + step.slot_count)};
  }

  // The gradients of a step where they lie.
  std::span<at::Tensor> of(const Step& step) { return {gradients_.data() + step.first_slot, step.slot_count}; }

 private:
  static void sum(at::Tensor& here, at::Tensor&& gradient, torch::autograd::Node* consumer, bool is_watched);

  std::vector<at::Tensor> gradients_;
};

}  // namespace backbind
