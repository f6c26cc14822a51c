#include "plan/match.h"

namespace backbind {

using torch::autograd::Edge;
using torch::autograd::Node;

std::optional<Difference> Matcher::follow(LiveNodes& nodes, const InputRef& planned, const Request& request,
                                          const Edge& edge) {
  if (!edge.is_valid()) {
    if (planned.step == InputRef::kNoEdge) return std::nullopt;
    return Difference::kNoLongerRequiresGrad;
  }
  if (!planned.is_followed()) {
    if (planned.step == InputRef::kNoEdge) return Difference::kNewlyRequiresGrad;
    // As long as it runs everything, a backward needs whatever an edge leads to.
    if (!request.should_execute(edge.function.get())) return std::nullopt;
    return Difference::kNeeded;
  }
  if (edge.input_nr != planned.input_nr) return Difference::kEdge;
  Node*& node = nodes[planned.step];
  if (node == nullptr) node = edge.function.get();
  if (node == edge.function.get()) return std::nullopt;
  return Difference::kEdge;
}

bool Matcher::has_ranking(const Plan& plan, const LiveNodes& nodes) {
  uint64_t last = kAccumulateGradSequenceNr;
  for (const Rank& rank : plan.ranking) {
    const uint64_t sequence = nodes[rank.step]->sequence_nr();
    if (rank.is_tied ? sequence != last : sequence >= last) return false;
    last = sequence;
  }
  return true;
}

bool Matcher::match(const Plan& plan, const Request& request, LiveNodes& nodes, Mismatch& mismatch) {
  const auto count = static_cast<uint32_t>(plan.steps.size());
  const auto differs = [&](Difference difference) {
    mismatch = {.difference = difference, .step = count};
    return false;
  };
  const auto differs_at = [&](size_t i, Difference difference, const std::type_info* found = nullptr) {
    mismatch = {difference, static_cast<uint32_t>(i), plan.steps[i].type, found};
    return false;
  };
  nodes.assign(count, nullptr);
  met_.clear(plan.is_sequence_ordered() ? plan.accumulate_grad_sequence_nr_count : count);
  const auto& roots = request.roots();
  if (roots.size() != plan.roots.size()) return differs(Difference::kRoots);
  for (size_t i = 0; i < roots.size(); ++i) {
    if (follow(nodes, plan.roots[i], request, roots[i])) return differs(Difference::kRoots);
  }
  uint64_t last_sequence = kAccumulateGradSequenceNr;
  for (size_t i = 0; i < count; ++i) {
    const Step& step = plan.steps[i];
    Node* node = nodes[i];
    if (node == nullptr) return differs_at(i, Difference::kEdge);
    if (&typeid(*node) != step.type) return differs_at(i, Difference::kNodeType, &typeid(*node));
    if (node->num_inputs() != step.num_inputs) return differs_at(i, Difference::kGradientCount);
    const uint64_t sequence = node->sequence_nr();
    if ((sequence == kAccumulateGradSequenceNr) != step.has_accumulate_grad_sequence_nr)
      return differs_at(i, Difference::kOrder);
    if (step.has_accumulate_grad_sequence_nr || !plan.is_sequence_ordered()) {
      if (!met_.add(node)) return differs_at(i, Difference::kShared);
    } else {
      if (sequence >= last_sequence) return differs_at(i, Difference::kOrder);
      last_sequence = sequence;
    }
    if (!step.runs) continue;
    if (node->num_outputs() != step.num_edges) return differs_at(i, Difference::kEdgeCount);
    for (uint32_t j = 0; j < step.num_edges; ++j) {
      const auto difference = follow(nodes, plan.next_edges[step.first_edge + j], request, node->next_edge(j));
      if (difference) return differs_at(i, *difference);
    }
  }
  if (!has_ranking(plan, nodes)) return differs(Difference::kRanking);
  if (request.inputs.size() != plan.inputs.size()) return differs(Difference::kInputs);
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Edge& edge = request.inputs[i];
    const InputRef& planned = plan.inputs[i];
    const bool fits = planned.is_followed()
                          ? nodes[planned.step] == edge.function.get() && edge.input_nr == planned.input_nr
                          : !edge.is_valid() || !request.task.nodes_in_graph_.contains(edge.function.get());
    if (!fits) return differs(Difference::kInputs);
  }
  return true;
}

}  // namespace backbind
