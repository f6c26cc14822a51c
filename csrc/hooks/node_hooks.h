// Every kind of hook that a node carries: which there are, and how each is called. Hooks are read off the live node
// when their turn comes, so those that were added or removed meanwhile count.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace backbind {

using torch::autograd::variable_list;

// Hooks on the tensors whose gradients come in (tensor_pre_hooks).
variable_list call_tensor_pre_hooks(torch::autograd::Node& node, variable_list gradients);

// Those that keep a gradient for tensor.retain_grad() (retains_grad_hooks).
variable_list call_retains_grad_hooks(torch::autograd::Node& node, variable_list gradients);

// Hooks before the node itself (pre_hooks).
variable_list call_pre_hooks(torch::autograd::Node& node, variable_list gradients);

// Hooks behind the node (post_hooks): `gradients` came in, `results` are what it made of them.
variable_list call_post_hooks(torch::autograd::Node& node, variable_list results, const variable_list& gradients);

// Whether the node has any hook, before it or behind it. Those behind the accumulation into a leaf
// (tensor_post_acc_grad_hooks) are asked for by a virtual call, which only an AccumulateGrad is worth.
inline bool has_hooks(torch::autograd::Node& node) {
  return !node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty() || !node.pre_hooks().empty() ||
         !node.post_hooks().empty();
}

// In the order in which they are called.
enum class HookKind : uint8_t { kTensorPre, kRetainsGrad, kPre, kPostAccumulateGrad, kPost };

// In words, in the order of the enumerators.
inline constexpr std::array<const char*, 5> kHookKinds = {
    "tensor hook", "retained gradient", "node pre-hook", "post-accumulate-grad hook", "node post-hook",
};

// Which kinds of hooks a node has.
class HookSet {
 public:
  // `runs` tells whether the node itself runs, or only its incoming gradient is asked for.
  HookSet(torch::autograd::Node& node, bool runs);

  bool empty() const { return bits_ == 0; }
  bool has(HookKind kind) const { return (bits_ >> static_cast<unsigned>(kind) & 1u) != 0; }
  uint8_t bits() const { return bits_; }
  bool operator==(const HookSet&) const = default;

  // Those it has, in words.
  std::vector<std::string> names() const;

 private:
  void add(HookKind kind, bool is_there) {
    if (is_there) bits_ |= static_cast<uint8_t>(1u << static_cast<unsigned>(kind));
  }

  uint8_t bits_ = 0;
};

}  // namespace backbind
