// Walks a live graph without running it.
#pragma once

#include <torch/csrc/autograd/edge.h>

#include "capture/plan.h"

namespace backbind {

// What becomes of the gradients that are asked for.
enum class Wanted {
  kHandedOut,    // as in autograd.grad: they are given to the caller
  kAccumulated,  // as in backward(inputs=...): the nodes that they belong to are run
};

struct Walk {
  Plan plan;
  LiveNodes nodes;
};

// The plan of the backward from `roots`. `inputs` are the edges whose gradients are asked for: only nodes on a path to
// one of them are run. Without `everything`, that is; with it, as in backward(), every node is.
Walk walk(const torch::autograd::edge_list& roots, const torch::autograd::edge_list& inputs,
          Wanted wanted = Wanted::kHandedOut, bool everything = false);

// The edges into every accumulator that the backward from `roots` reaches, in the order in which the engine would
// accumulate.
torch::autograd::edge_list leaf_edges(const torch::autograd::edge_list& roots);

}  // namespace backbind
