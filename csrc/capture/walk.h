// Walks a live graph without running it.
#pragma once

#include <torch/csrc/autograd/edge.h>

#include <vector>

#include "capture/plan.h"

namespace backbind {

// The plan of the backward from `roots`. `wanted` are the edges whose gradients are asked for: only nodes on a path to
// one of them are run, as in autograd.grad(inputs=...).
Plan walk(const torch::autograd::edge_list& roots, const torch::autograd::edge_list& wanted);

// The edges into every accumulator that the backward from `roots` reaches, in the order in which the engine would
// accumulate.
torch::autograd::edge_list leaf_edges(const torch::autograd::edge_list& roots);

}  // namespace backbind
