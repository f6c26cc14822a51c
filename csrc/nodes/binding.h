// The C++ record of one node type: its names, its schema and its functions. The generator writes one for each node.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/function.h>

#include <span>
#include <typeinfo>
#include <vector>

#include "ivalue/pack.h"
#include "ivalue/value_kind.h"
#include "nodes/step.h"

namespace backbind {

using torch::autograd::variable_list;
using ivalue_list = std::vector<c10::IValue>;

// One schema argument after `grads` and `needs_input_grad`.
struct Argument {
  const char* name;
  ValueKind kind;
};

struct Binding {
  // The functional backward: `arguments` is needs_input_grad (a list of bool), then the schema's other arguments.
  using Apply = variable_list (*)(const variable_list& grads, const ivalue_list& arguments);
  using Pack = void (*)(torch::autograd::Node& node, PackWriter& writer);

  const char* name;
  const char* schema;
  const std::type_info* node_type;
  size_t inputs;
  // How many gradients come in, or -1 where the forward returns a list of any length.
  int gradients;
  bool is_inline;
  std::span<const Argument> arguments;
  Apply apply;
  // The same through the node struct, whatever `apply` does: the reference that an inline formula is compared with.
  Apply apply_delegate;
  Pack pack;
  // How many edges a live node has, by the lengths of lists that its forward was given; null where it is `inputs`.
  using EdgeCount = size_t (*)(const torch::autograd::Node& node);
  EdgeCount edge_count;
  // Null where a live node has to be called as the engine calls it.
  StepFunction step;
  // The operators of torch that `step` calls beneath autograd's keys, by name without overload.
  std::span<const char* const> step_operators;

  // Whether a live node can be run by its formulas: they are compiled, and it has the edges and gradients that its
  // operator gives it.
  bool has_step_for(const torch::autograd::Node& node) const {
    if (step == nullptr) return false;
    const size_t edges = edge_count == nullptr ? inputs : edge_count(node);
    return node.num_outputs() == edges && static_cast<int64_t>(node.num_inputs()) >= gradients;
  }
};

}  // namespace backbind
