#include "plan/fingerprint.h"

#include <algorithm>
#include <typeinfo>
#include <utility>
#include <vector>

#include "plan/node_numbers.h"
#include "plan/plan.h"

namespace backbind {

using torch::autograd::Edge;
using torch::autograd::Node;

namespace {

// Mixes numbers one after another.
class Hash {
 public:
  void add(uint64_t value) {
    value_ = (value_ ^ value) * 0x9E3779B97F4A7C15u;
    value_ ^= value_ >> 32;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

constexpr uint64_t kNowhere = UINT64_MAX;
constexpr uint64_t kNotNeeded = UINT64_MAX - 1;

// Every number that is smaller than the one before, and every tie, with the node that has it.
void add_ranking(Hash& hash, const std::vector<Node*>& nodes) {
  std::vector<std::pair<uint64_t, uint32_t>> by_sequence;
  by_sequence.reserve(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    // A larger number comes first, and of equal ones the node that was found first.
    by_sequence.emplace_back(kAccumulateGradSequenceNr - nodes[i]->sequence_nr(), i);
  }
  std::sort(by_sequence.begin(), by_sequence.end());
  uint64_t before = 0;
  for (const auto& [sequence, node] : by_sequence) {
    hash.add(uint64_t{2} * node + (sequence == before ? 1 : 0));
    before = sequence;
  }
}

}  // namespace

uint64_t fingerprint(const Request& request) {
  const auto& needed = request.task.exec_info_;
  // In the order in which they are found, which is the same in all graphs of one structure.
  NodeNumbers found;
  found.clear(request.task.nodes_in_graph_.size() + request.roots().size());
  Hash hash;
  const auto add_edge = [&](const Edge& edge) {
    if (!edge.is_valid()) return hash.add(kNowhere);
    if (!request.should_execute(edge.function.get())) return hash.add(kNotNeeded);
    hash.add(found.number(edge.function.get()));
    hash.add(edge.input_nr);
  };
  for (const Edge& root : request.roots()) add_edge(root);
  for (size_t i = 0; i < found.nodes().size(); ++i) {
    Node* node = found.nodes()[i];
    hash.add(reinterpret_cast<uintptr_t>(&typeid(*node)));
    hash.add(node->num_inputs());
    if (!request.runs_everything() && !needed.at(node).needed_) continue;
    hash.add(node->num_outputs());
    for (const Edge& edge : node->next_edges()) add_edge(edge);
  }
  for (const Edge& input : request.inputs) {
    const bool is_reached = input.is_valid() && found.contains(input.function.get());
    hash.add(is_reached ? found.number(input.function.get()) : kNowhere);
    if (is_reached) hash.add(input.input_nr);
  }
  add_ranking(hash, found.nodes());
  return hash.value();
}

}  // namespace backbind
