// Operators of torch whose kernels for autograd's keys are left out where steps run beneath these keys. That makes no
// difference as long as they are torch's own. A program may register others, at any time, and take them back.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <atomic>
#include <deque>
#include <string>
#include <string_view>

namespace backbind {

// All overloads of one name, without those that write into a tensor given as `out`.
class WatchedOperator {
 public:
  explicit WatchedOperator(std::string_view name);

  const std::string& name() const { return name_; }

  // Whether the kernels that a step leaves out are torch's own now. A look at a few pointers, unless somebody has
  // registered others.
  bool has_kernels_of_torch();

 private:
  // A place in the dispatcher's table.
  struct Entry {
    c10::OperatorHandle overload;
    c10::DispatchKey key;
    const c10::KernelFunction& now;
    // Torch's own kernel, once it was seen there.
    std::atomic<const c10::KernelFunction*> own{nullptr};
  };

  void watch(const c10::OperatorHandle& overload, c10::DispatchKey key);
  static bool is_of_torch(Entry& entry);

  const std::string name_;
  std::deque<Entry> entries_;
};

// Those that sum gradients, in slots, over dimensions along which a value was broadcast, and into leaves.
inline constexpr std::array<std::string_view, 4> kSumOperators = {"add", "add_", "sum", "view"};

// The operator of torch with this name, the same for each call.
WatchedOperator& watched_operator(std::string_view name);

}  // namespace backbind
