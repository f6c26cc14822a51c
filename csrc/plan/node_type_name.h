// The name of a node type as people know it.
#pragma once

#include <string>
#include <typeinfo>

namespace backbind {

// "MulBackward0", "AccumulateGrad"; "torch.autograd.Function" for all functions of Python, which share one type.
std::string node_type_name(const std::type_info& type);

}  // namespace backbind
