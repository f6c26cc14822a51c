#include "hooks/node_hooks.h"

#include <utility>

namespace backbind {

namespace {

// By index, because a hook may add another to the node that it hangs on.
template <class Hooks>
variable_list call_each(Hooks& hooks, variable_list gradients) {
  for (size_t i = 0; i < hooks.size(); ++i) gradients = (*hooks[i])(gradients);
  return gradients;
}

}  // namespace

variable_list call_tensor_pre_hooks(torch::autograd::Node& node, variable_list gradients) {
  return call_each(node.tensor_pre_hooks(), std::move(gradients));
}

variable_list call_retains_grad_hooks(torch::autograd::Node& node, variable_list gradients) {
  for (const auto& [output, hook] : node.retains_grad_hooks()) gradients = (*hook)(gradients);
  return gradients;
}

variable_list call_pre_hooks(torch::autograd::Node& node, variable_list gradients) {
  return call_each(node.pre_hooks(), std::move(gradients));
}

variable_list call_post_hooks(torch::autograd::Node& node, variable_list results, const variable_list& gradients) {
  auto& hooks = node.post_hooks();
  for (size_t i = 0; i < hooks.size(); ++i) results = (*hooks[i])(results, gradients);
  return results;
}

HookSet::HookSet(torch::autograd::Node& node, bool runs) {
  add(HookKind::kTensorPre, !node.tensor_pre_hooks().empty());
  add(HookKind::kRetainsGrad, !node.retains_grad_hooks().empty());
  if (!runs) return;
  add(HookKind::kPre, !node.pre_hooks().empty());
  add(HookKind::kPostAccumulateGrad, node.tensor_post_acc_grad_hooks() != nullptr);
  add(HookKind::kPost, !node.post_hooks().empty());
}

std::vector<std::string> HookSet::names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < kHookKinds.size(); ++i) {
    if (has(static_cast<HookKind>(i))) names.emplace_back(kHookKinds[i]);
  }
  return names;
}

}  // namespace backbind
