// What a walk over a live graph gives: the steps of a backward in the order in which the engine would run them.
#pragma once

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "nodes/binding.h"

namespace backbind {

// Where a gradient goes: input `input` of step `step`. Each such pair is a slot, which sums what arrives there.
struct SlotIndex {
  size_t step;
  size_t input;
};

// One node, run once.
struct Step {
  c10::intrusive_ptr<torch::autograd::Node> node;
  // Null where no binding knows the node: an accumulator, a Python function, a copy of slices ...
  const Binding* binding;
  // Where each gradient that the node computes goes; nothing where it is not needed.
  std::vector<std::optional<SlotIndex>> targets;
  // Whether the node is run; otherwise its incoming gradients are only handed out.
  bool runs;
};

struct Plan {
  std::vector<Step> steps;
  // Where the gradients of the outputs enter, one for each root.
  std::vector<SlotIndex> roots;
  // The gradients that are handed out, one for each tensor that was asked for; nothing where it is not reached.
  std::vector<std::optional<SlotIndex>> gradients;
};

}  // namespace backbind
