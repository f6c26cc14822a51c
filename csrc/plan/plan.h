// The structure of a backward: its nodes in the order in which the engine would run them, and the edges between them. A
// plan outlives the graph that it was made from; the nodes lie beside it.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <memory>
#include <span>
#include <typeinfo>
#include <vector>

#include "nodes/binding.h"
#include "nodes/watched_operators.h"

namespace backbind {

// Where a gradient goes: input `input_nr` of the node of step `step`. Each such pair has an input buffer, which sums
// what arrives there.
struct InputRef {
  static constexpr uint32_t kNoEdge = UINT32_MAX;         // the edge is not valid
  static constexpr uint32_t kNotNeeded = UINT32_MAX - 1;  // nobody asked for what lies behind the edge

  uint32_t step = kNoEdge;
  uint32_t input_nr = 0;

  bool is_followed() const { return step < kNotNeeded; }
  bool operator==(const InputRef&) const = default;
};

// A gradient that the backward returns: what arrives at input `input_nr` of the step is result number `result`.
struct ReturnedGrad {
  uint32_t input_nr;
  uint32_t result;
};

// One node, run once.
struct Step {
  const std::type_info* type;
  // Null where no binding knows the node: an AccumulateGrad, a Python function, CopySlices ...
  const Binding* binding;
  // The input buffers of a step lie side by side. Other steps may have them before and after.
  uint32_t first_buffer;
  uint32_t num_inputs;
  // In Plan::next_edges and Plan::needs_input_grad.
  uint32_t first_edge;
  uint32_t num_edges;
  // In Plan::returned_grads.
  uint32_t first_returned_grad;
  uint32_t returned_grad_count;
  // Whether the node is called; otherwise its incoming gradients are only returned.
  bool runs;
  bool is_accumulate_grad;
  // The engine runs a node with this number (kAccumulateGradSequenceNr) as soon as it is ready.
  bool has_accumulate_grad_sequence_nr;
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
  // The edges of all steps, those of one side by side.
  std::vector<InputRef> next_edges;
  // For each of these, whether it is followed.
  std::vector<uint8_t> needs_input_grad;
  std::vector<ReturnedGrad> returned_grads;
  // Where the gradients of the outputs enter, one for each root.
  std::vector<InputRef> roots;
  // What was asked for, one for each edge in inputs=; kNoEdge where it is not reached.
  std::vector<InputRef> inputs;
  uint32_t buffer_count = 0;
  // The most edges that a step has.
  uint32_t max_num_edges = 0;
  // How many steps have kAccumulateGradSequenceNr.
  uint32_t accumulate_grad_sequence_nr_count = 0;
  // The steps that have another number than that, by falling sequence number of their nodes. The engine's order follows
  // from the structure and from this. Left empty where the numbers simply fall from step to step (is_sequence_ordered),
  // as they do if one thread made every node after those that its gradients flow to.
  std::vector<Rank> ranking;
  // Every node type once.
  std::vector<const std::type_info*> node_types;

  // What steps of this plan call below autograd's dispatch keys, sums of gradients included.
  std::vector<WatchedOperator*> operators;

  std::span<const InputRef> next_edges_of(const Step& step) const {
    return {next_edges.data() + step.first_edge, step.num_edges};
  }
  std::span<const uint8_t> needs_input_grad_of(const Step& step) const {
    return {needs_input_grad.data() + step.first_edge, step.num_edges};
  }
  std::span<const ReturnedGrad> returned_grads_of(const Step& step) const {
    return {returned_grads.data() + step.first_returned_grad, step.returned_grad_count};
  }
  uint32_t buffer_of(const InputRef& input) const { return steps[input.step].first_buffer + input.input_nr; }
  bool is_sequence_ordered() const { return ranking.empty(); }

  // What the plan takes of memory.
  size_t bytes() const;
};

using PlanPtr = std::shared_ptr<const Plan>;

// The nodes of a live graph, one for each step of a plan. They live as long as the graph does.
using LiveNodes = std::vector<torch::autograd::Node*>;

// The sequence number that torch gives every AccumulateGrad.
constexpr uint64_t kAccumulateGradSequenceNr = UINT64_MAX;

}  // namespace backbind
