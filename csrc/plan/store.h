// The plans that are kept for replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <typeinfo>
#include <utility>
#include <vector>

#include "plan/executable.h"
#include "plan/match.h"
#include "plan/plan.h"
#include "plan/request.h"

namespace backbind {

// What a look-up found.
struct LookUp {
  // The plan that fits, with its nodes; or null.
  PlanPtr plan;
  // What the backend made of it.
  ExecutablePtr executable;
  LiveNodes nodes;
  // Where none fits: how the graph differs from a plan that nearly does, if there is one.
  std::optional<Mismatch> difference;
  // The graph's fingerprint, if it was asked for.
  std::optional<uint64_t> fingerprint;
};

// A bounded number of plans of a bounded size, those used last, each with what backends made of it; safe to use from
// several threads.
//
// Each plan lies under a key of what a look at the roots tells: their node types, the depth of the graph behind them,
// how many gradients are asked for. So a program that alternates between graphs finds each at once. Where many plans
// lie under one key, the graph's fingerprint finds the one that may fit, so that a look-up never takes longer than to
// match a few plans.
class PlanStore {
 public:
  PlanStore(size_t most_plans, size_t most_bytes) : most_plans_(most_plans), most_bytes_(most_bytes) {}

  LookUp find(const Request& request, const BackendPtr& backend);

  // Prepares the new plan of `request`, for which `found` was found, for the backend, and fills both in there. Keeps
  // them; those that were not used for longest go when there are too many. Returns false, and keeps nothing, where the
  // plan alone is too large.
  bool keep(const Request& request, const BackendPtr& backend, PlanPtr plan, LookUp& found);

  size_t size() const;
  size_t bytes() const;
  void clear();

  // Held over a fork, so that the child never finds a lock that no thread of its own will open.
  std::mutex& mutex() { return mutex_; }

 private:
  // What a look at the roots tells.
  struct Key {
    explicit Key(const Request& request);
    bool operator==(const Key&) const = default;

    // Whether it differs in the depth, and in nothing else.
    bool differs_in_depth(const Key& other) const;

    size_t roots;
    size_t inputs;
    InputGrads input_grads;
    const std::type_info* type = nullptr;  // of the first root
    uint64_t depth;                        // of the graph behind them
    size_t others = 0;                     // a hash of the other roots
  };
  struct Kept {
    Key key;
    uint64_t fingerprint;
    PlanPtr plan;
    std::shared_ptr<const Lowering> lowering;
    // For backends that still live, in the order in which each was first asked.
    std::vector<std::pair<std::weak_ptr<const Backend>, ExecutablePtr>> executables;

    ExecutablePtr made_by(const BackendPtr& backend) const;
    // Drops what was made by backends that are gone into `dropped`.
    void add(const BackendPtr& backend, ExecutablePtr executable, std::vector<ExecutablePtr>& dropped);
    size_t bytes;
  };

  // The plans under a key that were used last, at most as many as are worth trying before the fingerprint is made.
  std::vector<PlanPtr> used_last(const Key& key) const;
  // The plan under a key that has the fingerprint, or null.
  PlanPtr with_fingerprint(const Key& key, uint64_t fingerprint) const;
  // The plan used last whose key differs in the depth alone, or null.
  PlanPtr of_another_depth(const Key& key) const;
  // Moves the plan to the front. Returns what the backend made of it, now if it had not yet.
  ExecutablePtr use(const PlanPtr& plan, const BackendPtr& backend);

  const size_t most_plans_;
  const size_t most_bytes_;
  mutable std::mutex mutex_;
  std::deque<Kept> kept_;  // the plan used last comes first
  size_t bytes_ = 0;
};

}  // namespace backbind
