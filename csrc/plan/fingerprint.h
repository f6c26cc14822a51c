// A number that tells graphs apart whose plans differ, without a plan at hand.
#pragma once

#include <cstdint>

#include "plan/request.h"

namespace backbind {

// Hashes all that a plan depends on: node types, edges, which of them are wanted, the order of sequence numbers. Two
// graphs that one plan fits have the same. That two with the same have one plan is only likely, so that the plan still
// has to be matched. Takes about as long as matching a plan.
uint64_t fingerprint(const Request& request);

}  // namespace backbind
