#include "torch_private_python_hooks.h"

#include <torch/csrc/dynamo/compiled_autograd.h>

#include <exception>
#include <utility>

namespace backbind::torch_private {

namespace {

using torch::dynamo::autograd::AutogradCompilerCall;
using torch::dynamo::autograd::CompiledNodeArgs;
using torch::dynamo::autograd::NodeCall;
using torch::dynamo::autograd::SizeInput;

}  // namespace

std::optional<std::vector<PythonHook>> python_hooks(torch::autograd::Node& node) {
  if (!node.retains_grad_hooks().empty()) return std::nullopt;
  AutogradCompilerCall compiler(SizeInput::STATIC);
  NodeCall call(0, node.getptr());
  CompiledNodeArgs visitor(compiler, call);
  try {
    for (const auto& hook : node.tensor_pre_hooks()) hook->compiled_args(visitor);
    for (const auto& hook : node.pre_hooks()) hook->compiled_args(visitor);
    for (const auto& hook : node.post_hooks()) hook->compiled_args(visitor);
    if (const auto& hook = node.tensor_post_acc_grad_hooks(); hook != nullptr) hook->compiled_args(visitor);
  } catch (const std::exception&) {
    return std::nullopt;  // one that compiled autograd does not know either
  }
  if (!call.cpp_tensor_pre_hooks.empty()) return std::nullopt;
  std::vector<PythonHook> hooks;
  const auto add = [&](HookKind kind, int number, int index) {
    hooks.push_back({kind, std::move(compiler.hooks[static_cast<size_t>(number)]), index});
  };
  for (const auto& [number, index] : call.tensor_pre_hooks) add(HookKind::kTensorPre, number, index);
  for (const int number : call.pre_hooks) add(HookKind::kPre, number, 0);
  for (const int number : call.post_hooks) add(HookKind::kPost, number, 0);
  for (const int number : call.post_acc_grad_hooks) add(HookKind::kPostAccumulateGrad, number, 0);
  return hooks;
}

}  // namespace backbind::torch_private
