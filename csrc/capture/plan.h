// What a walk over a live graph gives: the steps of a backward in the order in which the engine would run them. A plan
// holds the structure alone, so that it outlives the graph that it was made from; the nodes lie beside it.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <span>
#include <typeinfo>
#include <vector>

#include "nodes/binding.h"
#include "nodes/watched_operators.h"

namespace backbind {

// Where a gradient goes: input `input` of step `step`. Each such pair is a slot, which sums what arrives there.
struct Target {
  static constexpr uint32_t kNoEdge = UINT32_MAX;        // the edge leads nowhere
  static constexpr uint32_t kUnwanted = UINT32_MAX - 1;  // nobody asked for what lies behind the edge

  uint32_t step = kNoEdge;
  uint32_t input = 0;

  bool is_followed() const { return step < kUnwanted; }
  bool operator==(const Target&) const = default;
};

// One gradient that is handed out rather than sent on: input `input` of the step is output `output` of the backward.
struct HandedOut {
  uint32_t input;
  uint32_t output;
};

// One node, run once.
struct Step {
  const std::type_info* type;
  // Null where no binding knows the node: an accumulator, a Python function, a copy of slices ...
  const Binding* binding;
  // The slots of its inputs lie side by side. Other steps may have them before and after.
  uint32_t first_slot;
  uint32_t slot_count;
  // In Plan::targets, one for each edge of the node.
  uint32_t first_target;
  uint32_t target_count;
  // In Plan::handed_out.
  uint32_t first_handed_out;
  uint32_t handed_out_count;
  // Whether the node is run; otherwise its incoming gradients are only handed out.
  bool runs;
  // Whether it is an AccumulateGrad.
  bool accumulates;
  // Whether the engine runs the node as soon as it is ready (kAtOnce).
  bool is_at_once;
  // Whether the node can be run by its formulas: they are compiled, and it has the edges and gradients that they know.
  bool has_formulas = false;
  // The position of `type` in Plan::node_types.
  uint32_t node_type = 0;
};

// One place in the order of sequence numbers.
struct Rank {
  uint32_t step : 31;
  // Whether its number equals that of the step before, rather than being smaller.
  uint32_t is_tied : 1;
};

struct Plan {
  std::vector<Step> steps;
  std::vector<Target> targets;
  // For each target, whether it is followed.
  std::vector<uint8_t> wanted;
  std::vector<HandedOut> handed_out;
  // Where the gradients of the outputs enter, one for each root.
  std::vector<Target> roots;
  // The gradients that are handed out, one for each edge that was asked for; kNoEdge where it is not reached.
  std::vector<Target> gradients;
  uint32_t slot_count = 0;
  // The most targets that a step has.
  uint32_t most_targets = 0;
  // How many steps are of nodes that the engine runs as soon as they are ready.
  uint32_t at_once_count = 0;
  // The steps that are not run at once, by falling sequence number of their nodes. The engine's order follows from the
  // structure and from this. Left empty where they simply fall from step to step, as they do if one thread made every
  // node after those that its gradients flow to.
  std::vector<Rank> ranking;
  // Every node type once.
  std::vector<const std::type_info*> node_types;

  // What steps of this plan call beneath autograd's keys, sums of gradients included.
  std::vector<WatchedOperator*> operators;

  std::span<const Target> targets_of(const Step& step) const {
    return {targets.data() + step.first_target, step.target_count};
  }
  std::span<const uint8_t> wanted_of(const Step& step) const {
    return {wanted.data() + step.first_target, step.target_count};
  }
  std::span<const HandedOut> handed_out_by(const Step& step) const {
    return {handed_out.data() + step.first_handed_out, step.handed_out_count};
  }
  // What the plan takes of memory.
  size_t bytes() const;
  uint32_t slot_of(const Target& target) const { return steps[target.step].first_slot + target.input; }
};

// The nodes of a live graph, one for each step of a plan. They live as long as the graph does.
using LiveNodes = std::vector<torch::autograd::Node*>;

// The sequence number of nodes that the engine runs as soon as they are ready.
constexpr uint64_t kAtOnce = UINT64_MAX;

}  // namespace backbind
