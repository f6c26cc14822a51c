// What must happen to a gradient on its way from one node to the next, so that it has the shape and dtype of the value
// whose gradient it is. The engine does this between any two nodes.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/core/SymInt.h>

#include <optional>
#include <vector>

#include "capture/walk.h"

namespace backbind {

struct Fit {
  std::vector<c10::SymInt> sizes;
  at::ScalarType dtype;
};

// How a gradient of the step `from` must be fitted to the slot `to`, or nothing where it is known to fit already.
std::optional<Fit> fit_for(const Walk& walk, size_t from, const Target& to);

}  // namespace backbind
