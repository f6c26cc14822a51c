// The end of an edge that has to lead somewhere, though no gradient ever travels along it.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <string>

namespace backbind {

struct Sink final : torch::autograd::Node {
  Sink() : Node(/*sequence_nr=*/uint64_t{0}) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&& /*inputs*/) override { return {}; }
  std::string name() const override { return "backbind::Sink"; }
};

}  // namespace backbind
