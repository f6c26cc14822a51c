// Walks a live graph without running it.
#pragma once

#include <torch/csrc/autograd/edge.h>

#include "plan/plan.h"
#include "plan/request.h"

namespace backbind {

struct Walk {
  Plan plan;
  LiveNodes nodes;
};

// The plan of the backward from `roots`. `inputs` are the edges whose gradients are asked for: only nodes on a path to
// one of them are run. Without `runs_everything`, that is; with it, as in backward(), every node is.
Walk walk(const torch::autograd::edge_list& roots, const torch::autograd::edge_list& inputs,
          InputGrads input_grads = InputGrads::kReturned, bool runs_everything = false);

// The edges into every AccumulateGrad that the backward from `roots` reaches, in the order in which the engine would
// accumulate.
torch::autograd::edge_list leaf_edges(const torch::autograd::edge_list& roots);

}  // namespace backbind
