// What an executable has to tell of one run, for those who count.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <typeinfo>

#include "plan/slow_path.h"

namespace backbind {

// Why a backward, or the rest of one, was run natively although a graph was wanted.
enum class NativeRunReason : uint8_t {
  kActiveModes,
  kBuildsGraph,
  kAnomalyMode,
  kSubclasses,
  kUnusualValues,
  kRootNotNeeded,
  kChangedAhead
};

// In words, for people, in the order of the enumerators.
inline constexpr std::array<const char*, 7> kNativeRunReasons = {
    "a mode, a transform, a profiler or autocast is active, which sees or changes what nodes call",
    "the graph of the gradients is wanted (create_graph), which a compiled one would not give",
    "anomaly mode, which checks what each node computes",
    "tensors of a class of Python that sees what nodes call",
    "a saved tensor that was freed or changed, a leaf that is none any more, or a number that is a symbol",
    "nothing behind the one output is wanted",
    "a hook or function has changed what lay ahead",
};

struct RunReport {
  // `node_types` are those of the plan, and outlive this.
  explicit RunReport(std::span<const std::type_info* const> node_types) : slow_path(node_types) {}

  SlowPathSteps slow_path;
  // Whether a graph was compiled for this run, in which time, and what was different about one that nearly fitted.
  bool has_compiled = false;
  double compile_seconds = 0;
  std::optional<std::string> compile_reason;
  std::optional<NativeRunReason> native_run;
};

}  // namespace backbind
