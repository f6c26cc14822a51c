// Why a step took the long way: through its live node, with all of autograd's machinery.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace backbind {

enum class Detour : uint8_t {
  kWatched,
  kHooks,
  kHandedOut,
  kOpaque,
  kNoFormulas,
  kTensors,
  kAccumulation,
};

// In words, for people, in the order of the enumerators.
inline constexpr std::array<const char*, 7> kDetours = {
    "a graph is built, or a mode, a transform or a profiler is at work",
    "hooks on the node or its tensor",
    "a gradient that is handed out",
    "a node that nothing is known of",
    "a node whose formulas are not compiled here, or which takes lists of tensors",
    "tensors other than dense real ones of the CPU, saved tensors with hooks or changed ones",
    "a gradient that its leaf cannot have as it is",
};

// How many steps of one backward took each.
using Detours = std::array<uint64_t, kDetours.size()>;

}  // namespace backbind
