#include "capture/match.h"

namespace backbind {

using torch::autograd::Edge;
using torch::autograd::Node;

namespace {

// An edge that the plan does not follow, because nothing behind it is wanted.
bool is_unwanted(const Request& request, const Edge& edge) {
  if (!edge.is_valid()) return false;
  const auto& needed = request.task.exec_info_;
  const auto found = needed.find(edge.function.get());
  return found == needed.end() || !found->second.should_execute();
}

}  // namespace

std::optional<Difference> Matcher::follow(LiveNodes& nodes, const Target& target, const Request& request,
                                          const Edge& edge) {
  if (!edge.is_valid()) {
    if (target.step == Target::kNoEdge) return std::nullopt;
    return Difference::kNoLongerRequiresGrad;
  }
  if (!target.is_followed()) {
    if (target.step == Target::kNoEdge) return Difference::kNewlyRequiresGrad;
    if (is_unwanted(request, edge)) return std::nullopt;
    return Difference::kWanted;
  }
  if (edge.input_nr != target.input) return Difference::kEdge;
  Node*& node = nodes[target.step];
  if (node == nullptr) node = edge.function.get();
  if (node == edge.function.get()) return std::nullopt;
  return Difference::kEdge;
}

bool Matcher::has_ranking(const Plan& plan, const LiveNodes& nodes) {
  uint64_t last = kAtOnce;
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
  const bool is_ranked = !plan.ranking.empty();
  nodes.assign(count, nullptr);
  met_.clear(is_ranked ? count : plan.at_once_count);
  const auto& roots = request.roots();
  if (roots.size() != plan.roots.size()) return differs(Difference::kRoots);
  for (size_t i = 0; i < roots.size(); ++i) {
    if (follow(nodes, plan.roots[i], request, roots[i])) return differs(Difference::kRoots);
  }
  uint64_t last_sequence = kAtOnce;
  for (size_t i = 0; i < count; ++i) {
    const Step& step = plan.steps[i];
    Node* node = nodes[i];
    if (node == nullptr) return differs_at(i, Difference::kEdge);
    if (&typeid(*node) != step.type) return differs_at(i, Difference::kNodeType, &typeid(*node));
    if (node->num_inputs() != step.slot_count) return differs_at(i, Difference::kGradientCount);
    const uint64_t sequence = node->sequence_nr();
    if ((sequence == kAtOnce) != step.is_at_once) return differs_at(i, Difference::kOrder);
    if (step.is_at_once || is_ranked) {
      if (!met_.add(node)) return differs_at(i, Difference::kShared);
    } else {
      if (sequence >= last_sequence) return differs_at(i, Difference::kOrder);
      last_sequence = sequence;
    }
    if (!step.runs) continue;
    if (node->num_outputs() != step.target_count) return differs_at(i, Difference::kEdgeCount);
    for (uint32_t j = 0; j < step.target_count; ++j) {
      const auto difference = follow(nodes, plan.targets[step.first_target + j], request, node->next_edge(j));
      if (difference) return differs_at(i, *difference);
    }
  }
  if (!has_ranking(plan, nodes)) return differs(Difference::kRanking);
  if (request.inputs.size() != plan.gradients.size()) return differs(Difference::kInputs);
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Edge& edge = request.inputs[i];
    const Target& target = plan.gradients[i];
    const bool fits = target.is_followed()
                          ? nodes[target.step] == edge.function.get() && edge.input_nr == target.input
                          : !edge.is_valid() || !request.task.nodes_in_graph_.contains(edge.function.get());
    if (!fits) return differs(Difference::kInputs);
  }
  return true;
}

}  // namespace backbind
