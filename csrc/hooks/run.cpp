#include "hooks/run.h"

namespace backbind {

namespace {

// By index, because a hook may add another to the node that it hangs on.
template <class Hooks>
variable_list run_each(Hooks& hooks, variable_list gradients) {
  for (size_t i = 0; i < hooks.size(); ++i) gradients = (*hooks[i])(gradients);
  return gradients;
}

}  // namespace

variable_list run_tensor_hooks(torch::autograd::Node& node, variable_list gradients) {
  gradients = run_each(node.tensor_pre_hooks(), std::move(gradients));
  for (const auto& [output, hook] : node.retains_grad_hooks()) gradients = (*hook)(gradients);
  return gradients;
}

variable_list run_node_pre_hooks(torch::autograd::Node& node, variable_list gradients) {
  return run_each(node.pre_hooks(), std::move(gradients));
}

variable_list run_node_post_hooks(torch::autograd::Node& node, variable_list results, const variable_list& gradients) {
  auto& hooks = node.post_hooks();
  for (size_t i = 0; i < hooks.size(); ++i) results = (*hooks[i])(results, gradients);
  return results;
}

}  // namespace backbind
