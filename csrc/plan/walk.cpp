#include "plan/walk.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <queue>
#include <set>
#include <string_view>
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
  size_t pending = 0;  // edges into it from nodes that run, and from the caller
  bool runs = false;   // whether it lies before something that is wanted
  bool is_returned = false;

  bool is_visited() const { return runs || is_returned; }
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

Graph explore(const edge_list& roots, const edge_list& inputs, InputGrads input_grads, bool runs_everything) {
  const auto order = children_first(roots);
  Graph graph;
  graph.reserve(order.size());
  for (Node* node : order) graph.emplace(node, Reached{.runs = runs_everything});
  for (const auto& edge : inputs) {
    const auto found = graph.find(edge.function.get());
    if (found == graph.end()) continue;
    (input_grads == InputGrads::kReturned ? found->second.is_returned : found->second.runs) = true;
  }
  for (Node* node : order) {  // children are decided before their parents
    for (const auto& edge : node->next_edges()) {
      if (edge.is_valid() && graph.at(edge.function.get()).is_visited()) graph.at(node).runs = true;
    }
  }
  // The engine has a node before the roots, so that a root waits for each place in which it stands among them.
  const auto wait_for = [&](const edge_list& edges) {
    for (const auto& edge : edges) {
      if (edge.is_valid()) graph.at(edge.function.get()).pending += 1;
    }
  };
  wait_for(roots);
  for (const auto& [node, reached] : graph) {
    if (reached.runs) wait_for(node->next_edges());
  }
  return graph;
}

// The engine runs, among the nodes that are ready, the one that was made last in the forward; AccumulateGrad has the
// largest number of all. Ties fall as the heap lets them, so it is the same heap with the same comparison.
struct MadeEarlier {
  bool operator()(Node* left, Node* right) const { return left->sequence_nr() < right->sequence_nr(); }
};
using ReadyNodes = std::priority_queue<Node*, std::vector<Node*>, MadeEarlier>;

// Calls `visit` for each node in the engine's order.
template <class Visit>
void in_engine_order(const edge_list& roots, Graph& graph, Visit visit) {
  ReadyNodes ready;
  const auto arrive = [&](const edge_list& edges) {
    for (const auto& edge : edges) {
      if (!edge.is_valid()) continue;
      Reached& child = graph.at(edge.function.get());
      if (--child.pending == 0 && child.is_visited()) ready.push(edge.function.get());
    }
  };
  arrive(roots);
  while (!ready.empty()) {
    Node* node = ready.top();
    ready.pop();
    visit(node);
    if (graph.at(node).runs) arrive(node->next_edges());
  }
}

// Fills a plan in while the walk visits one node after another.
class Planner {
 public:
  explicit Planner(const Graph& graph) : graph_(graph) {}

  void visit(Node* node) {
    positions_.emplace(node, static_cast<uint32_t>(walk_.nodes.size()));
    const bool runs = graph_.at(node).runs;
    const bool is_accumulate_grad = dynamic_cast<AccumulateGrad*>(node) != nullptr;
    walk_.plan.steps.push_back({.type = &typeid(*node),
                                .binding = runs ? find_binding(*node) : nullptr,
                                .first_buffer = kNoBuffer,
                                .num_inputs = node->num_inputs(),
                                .first_edge = 0,
                                .num_edges = 0,
                                .first_returned_grad = 0,
                                .returned_grad_count = 0,
                                .runs = runs,
                                .is_accumulate_grad = is_accumulate_grad,
                                .has_accumulate_grad_sequence_nr = node->sequence_nr() == kAccumulateGradSequenceNr,
                                .node_type = number_of(typeid(*node))});
    walk_.plan.accumulate_grad_sequence_nr_count += walk_.plan.steps.back().has_accumulate_grad_sequence_nr ? 1 : 0;
    walk_.nodes.push_back(node);
  }

  Walk finish(const edge_list& roots, const edge_list& inputs, InputGrads input_grads) {
    Plan& plan = walk_.plan;
    for (const auto& root : roots) plan.roots.push_back(input_ref_of(root));
    for (const auto& edge : inputs) {
      const InputRef input = input_ref_of(edge);
      plan.inputs.push_back(input.is_followed() ? input : InputRef());
    }
    std::vector<std::vector<ReturnedGrad>> returned_grads(plan.steps.size());
    if (input_grads == InputGrads::kReturned) {
      for (uint32_t i = 0; i < plan.inputs.size(); ++i) {
        if (const InputRef& from = plan.inputs[i]; from.is_followed())
          returned_grads[from.step].push_back({from.input_nr, i});
      }
    }
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      Step& step = plan.steps[i];
      step.first_edge = static_cast<uint32_t>(plan.next_edges.size());
      step.num_edges = walk_.nodes[i]->num_outputs();
      plan.max_num_edges = std::max(plan.max_num_edges, step.num_edges);
      step.has_formulas = step.binding != nullptr && step.binding->has_step_for(*walk_.nodes[i]);
      for (const auto& edge : walk_.nodes[i]->next_edges()) {
        plan.next_edges.push_back(input_ref_of(edge));
        plan.needs_input_grad.push_back(plan.next_edges.back().is_followed() ? 1 : 0);
      }
      step.first_returned_grad = static_cast<uint32_t>(plan.returned_grads.size());
      step.returned_grad_count = static_cast<uint32_t>(returned_grads[i].size());
      plan.returned_grads.insert(plan.returned_grads.end(), returned_grads[i].begin(), returned_grads[i].end());
    }
    place_buffers(plan);
    rank(plan);
    plan.operators = operators_called(plan);
    shrink(plan);
    return std::move(walk_);
  }

 private:
  static constexpr uint32_t kNoBuffer = UINT32_MAX;

  // A step has its input buffers from the first gradient that is added there until it runs; then others have them, so
  // that a plan needs as many as gradients are on their way at once.
  static void place_buffers(Plan& plan) {
    std::unordered_map<uint32_t, std::vector<uint32_t>> free;
    const auto place = [&](const InputRef& input) {
      if (!input.is_followed()) return;
      Step& step = plan.steps[input.step];
      if (step.first_buffer != kNoBuffer) return;
      if (auto& fitting = free[step.num_inputs]; !fitting.empty()) {
        step.first_buffer = fitting.back();
        fitting.pop_back();
      } else {
        step.first_buffer = plan.buffer_count;
        plan.buffer_count += step.num_inputs;
      }
    };
    for (const InputRef& root : plan.roots) place(root);
    for (uint32_t i = 0; i < plan.steps.size(); ++i) {
      place({.step = i});
      const Step& step = plan.steps[i];
      free[step.num_inputs].push_back(step.first_buffer);
      if (!step.runs) continue;
      for (const InputRef& input : plan.next_edges_of(step)) place(input);
    }
  }

  // The position of a node type in the plan's list of them.
  uint32_t number_of(const std::type_info& type) {
    const auto [place, is_new] = node_types_.emplace(&type, static_cast<uint32_t>(walk_.plan.node_types.size()));
    if (is_new) walk_.plan.node_types.push_back(&type);
    return place->second;
  }

  // Notes the order of sequence numbers down where it is not that of the steps.
  void rank(Plan& plan) const {
    const auto sequence = [&](const Rank& one) { return walk_.nodes[one.step]->sequence_nr(); };
    std::vector<Rank> order;
    for (uint32_t i = 0; i < plan.steps.size(); ++i) {
      if (!plan.steps[i].has_accumulate_grad_sequence_nr) order.push_back({.step = i, .is_tied = 0});
    }
    const auto falls = [&](const Rank& left, const Rank& right) { return sequence(left) > sequence(right); };
    const auto does_not_fall = [&](const Rank& left, const Rank& right) { return !falls(left, right); };
    if (std::adjacent_find(order.begin(), order.end(), does_not_fall) == order.end()) return;
    std::stable_sort(order.begin(), order.end(), falls);
    for (size_t i = 1; i < order.size(); ++i) order[i].is_tied = sequence(order[i]) == sequence(order[i - 1]) ? 1 : 0;
    plan.ranking = std::move(order);
  }

  // A plan is held for long, so it is not to hold what its vectors took in advance.
  static void shrink(Plan& plan) {
    plan.steps.shrink_to_fit();
    plan.next_edges.shrink_to_fit();
    plan.needs_input_grad.shrink_to_fit();
    plan.returned_grads.shrink_to_fit();
    plan.roots.shrink_to_fit();
    plan.inputs.shrink_to_fit();
    plan.ranking.shrink_to_fit();
    plan.node_types.shrink_to_fit();
    plan.operators.shrink_to_fit();
  }

  static std::vector<WatchedOperator*> operators_called(const Plan& plan) {
    std::unordered_set<const Binding*> bindings;
    std::set<std::string_view> names(kSumOperators.begin(), kSumOperators.end());
    for (const Step& step : plan.steps) {
      if (!step.has_formulas || !bindings.insert(step.binding).second) continue;
      names.insert(step.binding->step_operators.begin(), step.binding->step_operators.end());
    }
    std::vector<WatchedOperator*> operators;
    for (const std::string_view name : names) operators.push_back(&watched_operator(name));
    return operators;
  }

  InputRef input_ref_of(const torch::autograd::Edge& edge) const {
    if (!edge.is_valid()) return {};
    const auto found = positions_.find(edge.function.get());
    if (found == positions_.end()) return {.step = InputRef::kNotNeeded, .input_nr = edge.input_nr};
    return {.step = found->second, .input_nr = edge.input_nr};
  }

  const Graph& graph_;
  Walk walk_;
  std::unordered_map<Node*, uint32_t> positions_;
  std::unordered_map<const std::type_info*, uint32_t> node_types_;
};

}  // namespace

Walk walk(const edge_list& roots, const edge_list& inputs, InputGrads input_grads, bool runs_everything) {
  Graph graph = explore(roots, inputs, input_grads, runs_everything);
  const Graph decided = graph;  // walking counts `pending` down
  Planner planner(decided);
  in_engine_order(roots, graph, [&](Node* node) { planner.visit(node); });
  return planner.finish(roots, inputs, input_grads);
}

edge_list leaf_edges(const edge_list& roots) {
  edge_list every;
  for (Node* node : children_first(roots)) {
    if (dynamic_cast<AccumulateGrad*>(node) != nullptr) every.emplace_back(node->getptr(), 0);
  }
  Graph graph = explore(roots, every, InputGrads::kReturned, /*runs_everything=*/false);
  edge_list leaves;
  in_engine_order(roots, graph, [&](Node* node) {
    if (dynamic_cast<AccumulateGrad*>(node) != nullptr) leaves.emplace_back(node->getptr(), 0);
  });
  return leaves;
}

}  // namespace backbind
