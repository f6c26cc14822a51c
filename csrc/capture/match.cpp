#include "capture/match.h"

#include <c10/util/Exception.h>
#include <c10/util/Type.h>

#include <bit>

namespace backbind {

using torch::autograd::Edge;
using torch::autograd::Node;

namespace {

std::string plain_name(const std::type_info& type) {
  const std::string name = c10::demangle(type.name());
  const size_t last = name.rfind("::");
  return last == std::string::npos ? name : name.substr(last + 2);
}

// An edge that the plan does not follow, because nothing behind it is wanted.
bool is_unwanted(const Request& request, const Edge& edge) {
  if (!edge.is_valid()) return false;
  const auto& needed = request.task.exec_info_;
  const auto found = needed.find(edge.function.get());
  return found == needed.end() || !found->second.should_execute();
}

}  // namespace

std::string Mismatch::describe(const Plan& plan) const {
  if (step >= plan.steps.size()) return what;
  const std::string planned = plain_name(*plan.steps[step].type);
  const std::string place = "step " + std::to_string(step) + ": ";
  if (found != nullptr) return place + plain_name(typeid(*found)) + " where the plan has " + planned;
  return place + planned + " " + what;
}

bool Matcher::is_new(Node* node) {
  const size_t mask = met_.size() - 1;
  // Nodes lie at multiples of 16 bytes at least.
  for (size_t i = (reinterpret_cast<uintptr_t>(node) >> 4) * 0x9E3779B97F4A7C15u >> 20;; ++i) {
    Node*& place = met_[i & mask];
    if (place == nullptr) {
      place = node;
      return true;
    }
    if (place == node) return false;
  }
}

bool Matcher::follows(LiveNodes& nodes, const Plan& plan, const Target& target, const Request& request,
                      const Edge& edge) {
  if (!target.is_followed()) return target.step == Target::kNoEdge ? !edge.is_valid() : is_unwanted(request, edge);
  if (edge.input_nr != target.input || !edge.is_valid()) return false;
  Node*& node = nodes[target.step];
  if (node == nullptr) node = edge.function.get();
  return node == edge.function.get();
}

bool Matcher::match(const Plan& plan, const Request& request, LiveNodes& nodes, Mismatch& mismatch) {
  const size_t count = plan.steps.size();
  const auto fail = [&](size_t step, const char* what, Node* found = nullptr) {
    mismatch = {step, what, found};
    return false;
  };
  nodes.assign(count, nullptr);
  met_.assign(std::bit_ceil(size_t{2} * plan.at_once_count + 2), nullptr);
  const auto& roots = request.roots();
  if (roots.size() != plan.roots.size()) return fail(count, "another number of roots");
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!follows(nodes, plan, plan.roots[i], request, roots[i])) return fail(count, "other roots");
  }
  uint64_t last_sequence = kAtOnce;
  uint32_t at_once_count = 0;
  for (size_t i = 0; i < count; ++i) {
    const Step& step = plan.steps[i];
    Node* node = nodes[i];
    if (node == nullptr) return fail(i, "is not reached");
    if (&typeid(*node) != step.type) return fail(i, "", node);
    if (node->num_inputs() != step.slot_count) return fail(i, "takes another number of gradients");
    if (const uint64_t sequence = node->sequence_nr(); sequence != kAtOnce) {
      if (sequence >= last_sequence) return fail(i, "was made in another order");
      last_sequence = sequence;
    } else if (++at_once_count > plan.at_once_count || !is_new(node)) {
      return fail(i, "is reached by other ways");
    }
    if (!step.runs) continue;
    if (node->num_outputs() != step.target_count) return fail(i, "has another number of edges");
    for (uint32_t j = 0; j < step.target_count; ++j) {
      const Target& target = plan.targets[step.first_target + j];
      if (!follows(nodes, plan, target, request, node->next_edge(j))) return fail(i, "leads elsewhere");
    }
  }
  if (request.inputs.size() != plan.gradients.size()) return fail(count, "another number of inputs");
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Edge& edge = request.inputs[i];
    const Target& target = plan.gradients[i];
    if (target.is_followed()) {
      if (nodes[target.step] != edge.function.get() || edge.input_nr != target.input)
        return fail(count, "other inputs");
    } else if (edge.is_valid() && request.task.nodes_in_graph_.contains(edge.function.get())) {
      return fail(count, "an input that was not reached before");
    }
  }
  return true;
}

}  // namespace backbind
