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

std::vector<std::string> hook_kinds(torch::autograd::Node& node, bool runs) {
  std::vector<std::string> kinds;
  if (!node.tensor_pre_hooks().empty()) kinds.emplace_back("tensor hook");
  if (!node.retains_grad_hooks().empty()) kinds.emplace_back("retained gradient");
  if (!node.pre_hooks().empty()) kinds.emplace_back("node pre-hook");
  if (node.tensor_post_acc_grad_hooks() != nullptr) kinds.emplace_back("post-accumulate-grad hook");
  if (runs && !node.post_hooks().empty()) kinds.emplace_back("node post-hook");
  return kinds;
}

}  // namespace backbind
