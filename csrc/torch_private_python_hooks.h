// The functions of Python behind a node's hooks: torch tells them to its compiled autograd alone.
#pragma once

#include <c10/core/SafePyObject.h>
#include <torch/csrc/autograd/function.h>

#include <optional>
#include <vector>

#include "hooks/node_hooks.h"

namespace backbind::torch_private {

struct PythonHook {
  HookKind kind;
  c10::SafePyObject function;
  // Which gradient a hook on a tensor is for.
  int index = 0;
};

// All hooks of a node, in the order in which they are called, those of one kind side by side; nothing where any of them
// is not a function of Python. Uses the visitor of torch/csrc/dynamo/compiled_autograd.h.
std::optional<std::vector<PythonHook>> python_hooks(torch::autograd::Node& node);

}  // namespace backbind::torch_private
