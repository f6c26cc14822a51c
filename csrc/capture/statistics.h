// What became of backwards, in numbers.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <typeinfo>

#include "capture/bounded_counts.h"
#include "plan/mismatch.h"
#include "plan/run_report.h"

namespace backbind {

// Why a backward is left to the engine.
enum class FallbackReason : uint8_t { kAccelerator, kTooDeep };

// In words, for people, in the order of the enumerators.
inline constexpr std::array<const char*, 2> kFallbackReasons = {
    "tensors on an accelerator",
    "a backward inside too many others",
};

struct SlowPathKind {
  SlowPathReason reason;
  const std::type_info* node_type;
  // The operator that is part of the reason, or null; the name lives as long as the process.
  const std::string* operator_name;

  auto operator<=>(const SlowPathKind&) const = default;
};

// Numbers since the start of a session, or of the process.
struct Counts {
  uint64_t captures = 0;       // plans made
  uint64_t replays = 0;        // backwards that a plan of an earlier one ran
  uint64_t steps = 0;          // nodes run by plans
  double look_up_seconds = 0;  // looking for plans that fit
  double capture_seconds = 0;  // making plans
  // Backwards left to the engine.
  std::array<uint64_t, kFallbackReasons.size()> fallbacks{};
  // Why a backward was captured although a plan nearly fitted it.
  BoundedCounts<Mismatch, 64> recaptures;
  // Steps of captured plans that run the live node because nothing more is known of it, by the node's name.
  BoundedCounts<std::string, 64> opaque_steps;
  BoundedCounts<SlowPathKind, 256> slow_path;
  uint64_t graphs = 0;         // graphs compiled
  double compile_seconds = 0;  // printing and compiling them
  // What was different about a graph that nearly fitted.
  BoundedCounts<std::string, 64> recompiles;
  // Backwards that were run natively although a graph was wanted.
  std::array<uint64_t, kNativeRunReasons.size()> native_runs{};
};

// Counts that several threads write. One mutex guards those of all sessions, so that it can be held over a fork;
// nothing that is done under it waits for anything else, the GIL least of all.
class Statistics {
 public:
  void update(const std::function<void(Counts&)>& change);
  Counts read() const;
  void clear();

  static std::mutex& mutex();

 private:
  Counts counts_;
};

// The counts of the process.
Statistics& process_statistics();

}  // namespace backbind
