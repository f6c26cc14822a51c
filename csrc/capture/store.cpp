#include "capture/store.h"

#include <c10/util/hash.h>

#include <algorithm>
#include <typeinfo>
#include <vector>

namespace backbind {

PlanStore::Key::Key(const Request& request)
    : roots(request.roots().size()),
      inputs(request.inputs.size()),
      wanted(request.wanted),
      // Of the node that the engine made for this backward, not of the roots, which other threads may be asking too:
      // a node that is asked notes that down.
      depth(request.root->topological_nr()) {
  for (const auto& root : request.roots()) {
    if (!root.is_valid()) continue;
    const std::type_info* root_type = &typeid(*root.function);
    if (type == nullptr) {
      type = root_type;
    } else {
      others = c10::hash_combine(others, c10::get_hash(root_type));
    }
  }
}

const char* PlanStore::Key::difference(const Key& other) const {
  if (type != other.type) return nullptr;
  if (roots != other.roots) return "another number of roots";
  if (inputs != other.inputs) return "another number of inputs";
  if (wanted != other.wanted) return "gradients that are handed out in one case and accumulated in the other";
  if (depth != other.depth) return "a graph of another depth";
  return "other roots";
}

std::shared_ptr<const Plan> PlanStore::find(const Request& request, LiveNodes& nodes, Mismatch& mismatch,
                                            std::shared_ptr<const Plan>& nearest) {
  const Key key(request);
  std::vector<std::shared_ptr<const Plan>> candidates;
  std::shared_ptr<const Plan> similar;
  Mismatch dissimilarity;
  {
    const std::lock_guard lock(mutex_);
    for (const Kept& one : kept_) {
      if (one.key == key) {
        candidates.push_back(one.plan);
      } else if (similar == nullptr) {
        if (const char* difference = key.difference(one.key)) {
          similar = one.plan;
          dissimilarity = {one.plan->steps.size(), difference, nullptr};
        }
      }
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
  if (nearest == nullptr && similar != nullptr) {
    nearest = similar;
    mismatch = dissimilarity;
  }
  return nullptr;
}

void PlanStore::keep(const Request& request, std::shared_ptr<const Plan> plan) {
  const std::lock_guard lock(mutex_);
  kept_.push_front({Key(request), std::move(plan)});
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
