// All bindings, found by node name or by the type of a live node.
#pragma once

#include <ATen/core/ivalue.h>

#include <span>
#include <string_view>
#include <vector>

#include "nodes/binding.h"

namespace backbind {

// Every binding, ordered by name.
std::span<const Binding* const> all_bindings();

// The binding of the node called `name`, or null.
const Binding* find_binding(std::string_view name);

// The binding of a live node, or null where no entry of derivatives.yaml made it.
const Binding* find_binding(const torch::autograd::Node& node);

// needs_input_grad and the saved values of a live node, in the order of the schema. `needed`, where given, tells for
// each edge of the node whether its gradient is needed; otherwise every valid edge's is.
//
// Raises eager's own RuntimeError where a saved tensor was released or changed in place.
ivalue_list pack(const Binding& binding, torch::autograd::Node& node, const std::vector<bool>* needed = nullptr);

}  // namespace backbind
