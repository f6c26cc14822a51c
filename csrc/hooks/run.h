// Calls the hooks of a node, in the order in which the engine calls them. Hooks are read off the live node when their
// turn comes, so those that were added or removed meanwhile count.
#pragma once

#include <torch/csrc/autograd/function.h>

namespace backbind {

using torch::autograd::variable_list;

// Hooks on the tensors whose gradients come in, then those that retain gradients.
variable_list run_tensor_hooks(torch::autograd::Node& node, variable_list gradients);

// Hooks before the node itself.
variable_list run_node_pre_hooks(torch::autograd::Node& node, variable_list gradients);

// Hooks behind the node: `gradients` came in, `results` are what it made of them.
variable_list run_node_post_hooks(torch::autograd::Node& node, variable_list results, const variable_list& gradients);

// Whether any hook is called before the node itself.
inline bool has_hooks_before(torch::autograd::Node& node) {
  return !node.tensor_pre_hooks().empty() || !node.pre_hooks().empty() || !node.retains_grad_hooks().empty();
}

// Whether any hook is called before or behind it.
inline bool is_hooked(torch::autograd::Node& node) { return has_hooks_before(node) || !node.post_hooks().empty(); }

}  // namespace backbind
