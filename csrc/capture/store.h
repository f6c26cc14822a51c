// The plans that are kept for replay.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "capture/match.h"
#include "capture/plan.h"
#include "capture/request.h"

namespace backbind {

// A bounded number of plans, those used last; safe to use from several threads.
//
// Each plan lies under a key of what a look at the roots tells: their node types, the depth of the graph behind them,
// how many gradients are asked for. So a program that alternates between graphs finds each at once.
class PlanStore {
 public:
  explicit PlanStore(size_t capacity) : capacity_(capacity) {}

  // A plan that fits `request`, with its nodes in `nodes`; otherwise null. Then `nearest` is the plan used last among
  // those that could have fitted, if there is one, and `mismatch` says how the graph differs from it.
  std::shared_ptr<const Plan> find(const Request& request, LiveNodes& nodes, Mismatch& mismatch,
                                   std::shared_ptr<const Plan>& nearest);

  // Keeps the plan of `request`; the one that was not used for longest goes when there are too many.
  void keep(const Request& request, std::shared_ptr<const Plan> plan);

  size_t size() const;
  void clear();

  // Held over a fork, so that the child never finds a lock that no thread of its own will open.
  std::mutex& mutex() { return mutex_; }

 private:
  // What a look at the roots tells.
  struct Key {
    explicit Key(const Request& request);
    bool operator==(const Key&) const = default;

    // How it differs from that of a plan whose first root is of the same type, in words; null where that is another.
    const char* difference(const Key& other) const;

    size_t roots;
    size_t inputs;
    Wanted wanted;
    const std::type_info* type = nullptr;  // of the first root
    uint64_t depth;                        // of the graph behind them
    size_t others = 0;                     // a hash of the other roots
  };
  struct Kept {
    Key key;
    std::shared_ptr<const Plan> plan;
  };

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::deque<Kept> kept_;  // the plan used last comes first
};

}  // namespace backbind
