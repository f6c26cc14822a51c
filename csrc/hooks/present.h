// Which kinds of hooks a node carries.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <string>
#include <vector>

namespace backbind {

// In words, in the order in which the engine would run them: "tensor hook", "retained gradient", "node pre-hook",
// "post-accumulate-grad hook", "node post-hook". `runs` tells whether the node itself runs, or only its incoming
// gradient is asked for.
std::vector<std::string> hooks_present(torch::autograd::Node& node, bool runs);

}  // namespace backbind
