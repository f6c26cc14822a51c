// Operators that steps of a plan call below autograd's dispatch keys although the program has kernels of its own there.
#pragma once

#include <vector>

#include "nodes/watched_operators.h"
#include "plan/plan.h"

namespace backbind {

// Looked for once in each backward; to register a kernel while it runs is a race that the program has with itself.
class ForeignKernels {
 public:
  ForeignKernels() = default;
  explicit ForeignKernels(const Plan& plan);

  // Null, if the step calls none. Sums belong to every step.
  const WatchedOperator* of(const Step& step) const {
    if (found_.empty()) [[likely]]
      return nullptr;
    return find(step);
  }

  // One of those that sum gradients, or null.
  const WatchedOperator* of_sums() const { return of_sums_; }

 private:
  const WatchedOperator* find(const Step& step) const;

  std::vector<const WatchedOperator*> found_;
  const WatchedOperator* of_sums_ = nullptr;
};

}  // namespace backbind
