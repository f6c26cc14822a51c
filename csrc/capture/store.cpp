#include "capture/store.h"

#include <c10/util/hash.h>

#include <algorithm>
#include <vector>

namespace backbind {

namespace {

size_t key_of(const Request& request) {
  size_t key = c10::get_hash(request.roots().size(), request.inputs.size(), static_cast<int>(request.wanted));
  for (const auto& root : request.roots()) {
    if (!root.is_valid()) continue;
    key = c10::hash_combine(key, c10::get_hash(&typeid(*root.function), root.function->topological_nr()));
  }
  return key;
}

}  // namespace

std::shared_ptr<const Plan> PlanStore::find(const Request& request, LiveNodes& nodes, Mismatch& mismatch,
                                            std::shared_ptr<const Plan>& nearest) {
  const size_t key = key_of(request);
  std::vector<std::shared_ptr<const Plan>> candidates;
  {
    const std::lock_guard lock(mutex_);
    for (const Kept& one : kept_) {
      if (one.key == key) candidates.push_back(one.plan);
    }
  }
  // Matching looks at nothing but the live graph and plans that never change, so other threads may go on meanwhile.
  Matcher matcher;
  for (const auto& candidate : candidates) {
    Mismatch here;
    if (matcher.match(*candidate, request, nodes, here)) {
      const std::lock_guard lock(mutex_);
      const auto used =
          std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) { return one.plan == candidate; });
      if (used != kept_.end()) std::rotate(kept_.begin(), used, used + 1);
      return candidate;
    }
    if (nearest == nullptr) {
      mismatch = here;
      nearest = candidate;
    }
  }
  return nullptr;
}

void PlanStore::keep(const Request& request, std::shared_ptr<const Plan> plan) {
  const std::lock_guard lock(mutex_);
  kept_.push_front({key_of(request), std::move(plan)});
  if (kept_.size() > capacity_) kept_.pop_back();
}

size_t PlanStore::size() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

void PlanStore::clear() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
}

}  // namespace backbind
