#include "nodes/watched_operators.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "torch_private.h"

namespace backbind {

namespace {

constexpr std::string_view kNamespace = "aten::";

// What formulas::transposed calls past the dispatcher, so that kernels of the CPU are left out too.
constexpr std::array<std::string_view, 2> kCalledDirectly = {"t", "transpose"};

// Of torch, by the name without namespace and overload.
const std::vector<c10::OperatorName>& overloads_of(std::string_view name) {
  static const auto all = [] {
    std::unordered_map<std::string, std::vector<c10::OperatorName>> by_name;
    for (const c10::OperatorName& one : c10::Dispatcher::singleton().getAllOpNames()) {
      if (!one.name.starts_with(kNamespace) || one.overload_name.ends_with("out")) continue;
      by_name[one.name.substr(kNamespace.size())].push_back(one);
    }
    return by_name;
  }();
  static const std::vector<c10::OperatorName> none;
  const auto found = all.find(std::string(name));
  return found == all.end() ? none : found->second;
}

}  // namespace

WatchedOperator::WatchedOperator(std::string_view name) : name_(name) {
  for (const c10::OperatorName& one : overloads_of(name)) {
    const auto overload = c10::Dispatcher::singleton().findSchema(one);
    if (!overload.has_value()) continue;
    watch(*overload, c10::DispatchKey::AutogradCPU);
    watch(*overload, c10::DispatchKey::ADInplaceOrView);
    if (std::ranges::find(kCalledDirectly, name) != kCalledDirectly.end()) watch(*overload, c10::DispatchKey::CPU);
  }
}

void WatchedOperator::watch(const c10::OperatorHandle& overload, c10::DispatchKey key) {
  entries_.emplace_back(overload, key, torch_private::kernel_in_table(overload, key));
}

bool WatchedOperator::has_kernels_of_torch() {
  return std::ranges::all_of(entries_, [](Entry& entry) {
    const c10::KernelFunction* own = entry.own.load(std::memory_order_acquire);
    return (own != nullptr && entry.now._equalsBoxedAndUnboxed(*own)) || is_of_torch(entry);
  });
}

bool WatchedOperator::is_of_torch(Entry& entry) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!torch_private::is_kernel_of_torch(entry.overload, entry.key)) return false;
  // Never freed: another thread may be comparing with the one before.
  entry.own.store(std::make_unique<const c10::KernelFunction>(entry.now).release(), std::memory_order_release);
  return true;
}

WatchedOperator& watched_operator(std::string_view name) {
  static std::mutex mutex;
  // Never destroyed, because threads may run backwards while the process ends.
  static auto& all = *std::make_unique<std::map<std::string, WatchedOperator, std::less<>>>().release();
  const std::lock_guard lock(mutex);
  const auto found = all.find(name);
  return found != all.end() ? found->second : all.try_emplace(std::string(name), name).first->second;
}

}  // namespace backbind
