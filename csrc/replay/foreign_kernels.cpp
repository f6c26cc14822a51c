#include "replay/foreign_kernels.h"

#include <algorithm>

namespace backbind {

ForeignKernels::ForeignKernels(const Plan& plan) {
  for (WatchedOperator* one : plan.operators) {
    if (one->has_kernels_of_torch()) [[likely]]
      continue;
    found_.push_back(one);
    if (std::ranges::find(kSumOperators, one->name()) != kSumOperators.end()) of_sums_ = one;
  }
}

const WatchedOperator* ForeignKernels::find(const Step& step) const {
  if (of_sums_ != nullptr || step.binding == nullptr) return of_sums_;
  const auto& called = step.binding->step_operators;
  const auto is_called = [&](const WatchedOperator* one) {
    return std::ranges::find(called, one->name()) != called.end();
  };
  const auto found = std::ranges::find_if(found_, is_called);
  return found == found_.end() ? nullptr : *found;
}

}  // namespace backbind
