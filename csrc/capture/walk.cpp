#include "capture/walk.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "nodes/registry.h"

namespace backbind {

using torch::autograd::AccumulateGrad;
using torch::autograd::edge_list;
using torch::autograd::Node;

namespace {

// What is known of a node before the order is made.
struct Reached {
  size_t pending = 0;   // edges into it from nodes that run
  bool needed = false;  // whether it lies before something that is wanted
  bool handed_out = false;
};

using Graph = std::unordered_map<Node*, Reached>;

// Nodes with children before parents, found without recursion: graphs may be deeper than the C stack.
std::vector<Node*> children_first(const edge_list& roots) {
  std::vector<Node*> order;
  std::unordered_set<Node*> seen;
  std::vector<std::pair<Node*, size_t>> path;
  for (const auto& root : roots) {
    if (!root.is_valid() || !seen.insert(root.function.get()).second) continue;
    path.emplace_back(root.function.get(), 0);
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next == node->num_outputs()) {
        order.push_back(node);
        path.pop_back();
        continue;
      }
      Node* child = node->next_edge(next++).function.get();
      if (child != nullptr && seen.insert(child).second) path.emplace_back(child, 0);
    }
  }
  return order;
}

Graph explore(const edge_list& roots, const edge_list& wanted) {
  const auto order = children_first(roots);
  Graph graph;
  graph.reserve(order.size());
  for (Node* node : order) graph.emplace(node, Reached());
  for (const auto& edge : wanted) {
    if (const auto found = graph.find(edge.function.get()); found != graph.end()) found->second.handed_out = true;
  }
  for (Node* node : order) {  // children are decided before their parents
    for (const auto& edge : node->next_edges()) {
      if (!edge.is_valid()) continue;
      const Reached& child = graph.at(edge.function.get());
      if (child.needed || child.handed_out) graph.at(node).needed = true;
    }
  }
  for (const auto& [node, reached] : graph) {
    if (!reached.needed) continue;
    for (const auto& edge : node->next_edges()) {
      if (!edge.is_valid()) continue;
      graph.at(edge.function.get()).pending += 1;
    }
  }
  return graph;
}

// The engine runs, among the nodes that are ready, the one that was made last in the forward; accumulators have the
// largest number of all. Ties fall as the heap lets them, so it is the same heap with the same comparison.
struct MadeEarlier {
  bool operator()(Node* left, Node* right) const { return left->sequence_nr() < right->sequence_nr(); }
};
using ReadyNodes = std::priority_queue<Node*, std::vector<Node*>, MadeEarlier>;

// Calls `visit` for each node in the engine's order.
template <class Visit>
void in_engine_order(const edge_list& roots, Graph& graph, Visit visit) {
  ReadyNodes ready;
  std::unordered_set<Node*> started;
  for (const auto& root : roots) {
    if (!root.is_valid()) continue;
    const Reached& reached = graph.at(root.function.get());
    // A root that another root leads to becomes ready later.
    if (reached.pending == 0 && (reached.needed || reached.handed_out) && started.insert(root.function.get()).second) {
      ready.push(root.function.get());
    }
  }
  while (!ready.empty()) {
    Node* node = ready.top();
    ready.pop();
    visit(node);
    if (!graph.at(node).needed) continue;
    for (const auto& edge : node->next_edges()) {
      if (!edge.is_valid()) continue;
      Reached& child = graph.at(edge.function.get());
      if (--child.pending == 0 && (child.needed || child.handed_out)) ready.push(edge.function.get());
    }
  }
}

}  // namespace

Plan walk(const edge_list& roots, const edge_list& wanted) {
  Graph graph = explore(roots, wanted);
  const Graph decided = graph;  // walking counts `pending` down
  Plan plan;
  std::unordered_map<Node*, size_t> positions;
  in_engine_order(roots, graph, [&](Node* node) {
    positions.emplace(node, plan.steps.size());
    const bool runs = decided.at(node).needed;
    plan.steps.push_back({node->getptr(), runs ? find_binding(*node) : nullptr, {}, runs});
  });
  const auto slot_of = [&](const torch::autograd::Edge& edge) -> std::optional<SlotIndex> {
    const auto found = edge.is_valid() ? positions.find(edge.function.get()) : positions.end();
    if (found == positions.end()) return std::nullopt;
    return SlotIndex{found->second, edge.input_nr};
  };
  for (Step& step : plan.steps) {
    if (!step.runs) continue;
    for (const auto& edge : step.node->next_edges()) step.targets.push_back(slot_of(edge));
  }
  for (const auto& root : roots) {
    if (const auto slot = slot_of(root)) plan.roots.push_back(*slot);
  }
  for (const auto& edge : wanted) plan.gradients.push_back(slot_of(edge));
  return plan;
}

edge_list leaf_edges(const edge_list& roots) {
  edge_list every;
  for (Node* node : children_first(roots)) {
    if (dynamic_cast<AccumulateGrad*>(node) != nullptr) every.emplace_back(node->getptr(), 0);
  }
  Graph graph = explore(roots, every);
  edge_list leaves;
  in_engine_order(roots, graph, [&](Node* node) {
    if (dynamic_cast<AccumulateGrad*>(node) != nullptr) leaves.emplace_back(node->getptr(), 0);
  });
  return leaves;
}

}  // namespace backbind
