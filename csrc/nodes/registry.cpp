#include "nodes/registry.h"

#include <algorithm>
#include <typeindex>
#include <unordered_map>

#include "generated_bindings.h"

namespace backbind {

namespace {

// Built once, at the first use, from what the shards contain; read-only afterwards, so threads share it freely.
struct Registry {
  Registry() {
    for (const auto shard : generated::binding_shards()) {
      by_name.insert(by_name.end(), shard.begin(), shard.end());
    }
    std::sort(by_name.begin(), by_name.end(), [](const Binding* left, const Binding* right) {
      return std::string_view(left->name) < std::string_view(right->name);
    });
    by_type.reserve(by_name.size());
    for (const Binding* binding : by_name) by_type.emplace(*binding->node_type, binding);
  }

  std::vector<const Binding*> by_name;
  std::unordered_map<std::type_index, const Binding*> by_type;
};

const Registry& registry() {
  static const Registry instance;
  return instance;
}

}  // namespace

std::span<const Binding* const> all_bindings() { return registry().by_name; }

const Binding* find_binding(std::string_view name) {
  const auto& bindings = registry().by_name;
  const auto found = std::lower_bound(
      bindings.begin(), bindings.end(), name,
      [](const Binding* binding, std::string_view wanted) { return std::string_view(binding->name) < wanted; });
  return found != bindings.end() && (*found)->name == name ? *found : nullptr;
}

const Binding* find_binding(const torch::autograd::Node& node) {
  const auto& bindings = registry().by_type;
  const auto found = bindings.find(typeid(node));
  return found == bindings.end() ? nullptr : found->second;
}

ivalue_list pack(const Binding& binding, torch::autograd::Node& node, const std::vector<bool>* needed) {
  PackWriter writer(node, needed);
  binding.pack(node, writer);
  return writer.take();
}

}  // namespace backbind
