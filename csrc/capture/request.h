// One backward as the engine was asked for it.
#pragma once

#include <torch/csrc/autograd/graph_task.h>

#include "capture/walk.h"

namespace backbind {

struct Request {
  // A node whose edges are the roots and whose outputs are their gradients. It keeps the live graph alive.
  const c10::intrusive_ptr<torch::autograd::Node>& root;
  // What the engine knows of this backward: its modes, its final callbacks, which nodes are needed.
  torch::autograd::GraphTask& task;
  // The edges whose gradients are asked for; none where every leaf accumulates.
  const torch::autograd::edge_list& inputs;
  Wanted wanted;

  const torch::autograd::edge_list& roots() const { return root->next_edges(); }
  // Whether every node that is reached runs, as in backward() without inputs.
  bool everything() const { return inputs.empty(); }
};

}  // namespace backbind
