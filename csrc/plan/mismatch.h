// How a live graph differs from a plan: why a backward had to be captured anew. Kept as an enumerator and numbers; the
// text is made when somebody reads it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <typeinfo>

namespace backbind {

enum class Difference : uint8_t {
  kNodeType,
  kGradientCount,
  kEdgeCount,
  kEdge,
  kNoLongerRequiresGrad,
  kNewlyRequiresGrad,
  kNeeded,
  kOrder,
  kShared,
  kRanking,
  kRoots,
  kInputs,
  kTooLarge,
};

struct Mismatch {
  Difference difference = Difference::kRoots;
  // The step of the plan where the graph departs from it; the number of steps where all of them fit.
  uint32_t step = 0;
  // The node type of that step; null where the difference is not one of a node.
  const std::type_info* planned = nullptr;
  // The type of the node that was found, where that is another.
  const std::type_info* found = nullptr;

  auto operator<=>(const Mismatch&) const = default;

  // In the terms of the program whose backward it is: "step 17: MmBackward0 where AddmmBackward0 was".
  std::string describe() const;
};

}  // namespace backbind
