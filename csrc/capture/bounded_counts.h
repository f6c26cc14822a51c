// Counts by key that never take more than a bounded amount of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace backbind {

// Counts how often each key was added. Where there are more keys than `kMost`, the rarest are counted together, so that
// those that matter keep a count of their own.
template <class Key, size_t kMost>
class BoundedCounts {
 public:
  void add(const Key& key, uint64_t times = 1) {
    if (const auto found = counts_.find(key); found != counts_.end()) {
      found->second += times;
      return;
    }
    if (counts_.size() == kMost) {
      const auto rarest = std::min_element(counts_.begin(), counts_.end(), [](const auto& left, const auto& right) {
        return left.second < right.second;
      });
      others_ += rarest->second;
      counts_.erase(rarest);
    }
    counts_.emplace(key, times);
  }

  const std::map<Key, uint64_t>& counts() const { return counts_; }
  // Of the keys that have no count of their own.
  uint64_t others() const { return others_; }

 private:
  std::map<Key, uint64_t> counts_;
  uint64_t others_ = 0;
};

}  // namespace backbind
