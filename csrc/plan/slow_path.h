// Why a step took the slow path: through its live node, with all of autograd's machinery.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace backbind {

enum class SlowPathReason : uint8_t {
  kActiveModes,
  kHooks,
  kOpaque,
  kNoFormulas,
  kEdges,
  kTensors,
  kAccumulation,
  kForeignKernel,
};

// In words, for people, in the order of the enumerators.
inline constexpr std::array<const char*, 8> kSlowPathReasons = {
    "a graph is built, or a mode, a transform or a profiler is active",
    "hooks on the node or its tensor",
    "a function of Python or C++, or another node that is not one of torch's operators",
    "the node's formulas are not compiled here",
    "the node was made with other edges than its operator gives it",
    "tensors other than dense real ones of the CPU, saved tensors with hooks or changed ones",
    "a gradient that its leaf cannot have as it is",
    "the program's own kernel for a dispatch key of autograd, of the operator",
};

// How many steps of one backward took the slow path, by the type of their node and the reason. Memory is taken when the
// first does.
class SlowPathSteps {
 public:
  // `node_types` are those of the plan, and outlive this.
  explicit SlowPathSteps(std::span<const std::type_info* const> node_types) : node_types_(node_types) {}

  // `node_type` is a position in the types.
  void add(size_t node_type, SlowPathReason reason) {
    if (counts_.empty()) [[unlikely]]
      counts_.resize(node_types_.size() * kReasons);
    counts_[node_type * kReasons + static_cast<size_t>(reason)] += 1;
  }

  // The same for steps that call an operator with a kernel that is not torch's. The name lives as long as the process.
  void add_foreign_kernel(size_t node_type, const std::string& operator_name) {
    foreign_kernels_[{node_types_[node_type], &operator_name}] += 1;
  }

  bool empty() const { return counts_.empty() && foreign_kernels_.empty(); }

  // Calls `visit(type, reason, operator, count)` for every count that is not zero; the operator's name is null unless
  // it is part of the reason.
  template <class Visit>
  void for_each(Visit visit) const {
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] == 0) continue;
      visit(*node_types_[i / kReasons], static_cast<SlowPathReason>(i % kReasons), nullptr, counts_[i]);
    }
    for (const auto& [kind, count] : foreign_kernels_) {
      visit(*kind.first, SlowPathReason::kForeignKernel, kind.second, count);
    }
  }

 private:
  static constexpr size_t kReasons = kSlowPathReasons.size();

  std::span<const std::type_info* const> node_types_;
  std::vector<uint32_t> counts_;
  std::map<std::pair<const std::type_info*, const std::string*>, uint32_t> foreign_kernels_;
};

}  // namespace backbind
