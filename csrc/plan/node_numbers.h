// Numbers nodes in the order in which they are met.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace backbind {

// A table of open addressing, whose size is a power of two: several times as fast as the standard one.
class NodeNumbers {
 public:
  // Forgets all nodes, and makes room for as many as are expected.
  void clear(size_t expected) {
    table_.assign(std::bit_ceil(2 * expected + 2), {nullptr, 0});
    nodes_.clear();
    nodes_.reserve(expected);
  }

  // The number of a node, which is given one if it was not met before.
  uint32_t number(torch::autograd::Node* node) {
    Place& place = place_of(node);
    if (place.first != nullptr) return place.second;
    const auto number = static_cast<uint32_t>(nodes_.size());
    place = {node, number};
    nodes_.push_back(node);
    if (2 * nodes_.size() >= table_.size()) grow();
    return number;
  }

  // Whether the node was not met before; now it was.
  bool add(torch::autograd::Node* node) {
    const size_t before = nodes_.size();
    return number(node) == before;
  }

  bool contains(torch::autograd::Node* node) { return place_of(node).first != nullptr; }

  // All nodes that were met, by their number.
  const std::vector<torch::autograd::Node*>& nodes() const { return nodes_; }

 private:
  using Place = std::pair<torch::autograd::Node*, uint32_t>;

  // Where the node is, or would be.
  Place& place_of(torch::autograd::Node* node) {
    const size_t mask = table_.size() - 1;
    // Nodes lie at multiples of 16 bytes at least.
    size_t i = (reinterpret_cast<uintptr_t>(node) >> 4) * 0x9E3779B97F4A7C15u >> 20;
    while (table_[i & mask].first != nullptr && table_[i & mask].first != node) ++i;
    return table_[i & mask];
  }

  void grow() {
    table_.assign(2 * table_.size(), {nullptr, 0});
    for (uint32_t i = 0; i < nodes_.size(); ++i) place_of(nodes_[i]) = {nodes_[i], i};
  }

  std::vector<Place> table_;
  std::vector<torch::autograd::Node*> nodes_;
};

}  // namespace backbind
