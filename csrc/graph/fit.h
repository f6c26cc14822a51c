// What must happen to a gradient on its way from one node to the next, so that it has the shape and dtype of the value
// whose gradient it is. The engine does this between any two nodes.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/core/SymInt.h>

#include <optional>
#include <vector>

#include "capture/plan.h"

namespace backbind {

struct Fit {
  std::vector<c10::SymInt> sizes;
  at::ScalarType dtype;
};

// How a gradient of `from` must be fitted to the slot `to` of `plan`, or nothing where it is known to fit already.
std::optional<Fit> fit_for(const Plan& plan, const Step& from, SlotIndex to);

// How the gradient of an output must look to enter the slot `to`.
Fit fit_of(const Plan& plan, SlotIndex to);

}  // namespace backbind
