// One backward as the engine was asked for it.
#pragma once

#include <torch/csrc/autograd/graph_task.h>

#include "torch_private.h"

namespace backbind {

// What becomes of the gradients of inputs=.
enum class InputGrads {
  kReturned,     // as in autograd.grad: they are given to the caller
  kAccumulated,  // as in backward(inputs=...): the nodes that they belong to are run
};

struct Request {
  // A node whose next edges are the roots and whose outputs are their gradients. It keeps the live graph alive.
  const c10::intrusive_ptr<torch::autograd::Node>& graph_root;
  // What the engine notes down of this backward: its modes, its final callbacks, which nodes are needed.
  torch::autograd::GraphTask& task;
  // The edges whose gradients are asked for; none where every leaf accumulates.
  const torch::autograd::edge_list& inputs;
  InputGrads input_grads;
  // Whether nodes_in_graph_ and dependencies_ of the task are filled; null where the engine has done that.
  bool* has_noted_graph = nullptr;

  // To be called before anything that may ask the task for the graph: foreign code, or the engine. Returns whether
  // there was something to do.
  bool note_graph() const {
    if (has_noted_graph == nullptr || *has_noted_graph) return false;
    torch_private::note_graph(*graph_root, task);
    *has_noted_graph = true;
    return true;
  }
  const torch::autograd::edge_list& roots() const { return graph_root->next_edges(); }
  // Whether every node that is reached runs, as in backward() without inputs.
  bool runs_everything() const { return inputs.empty(); }
  // Whether the engine would run this node, or return a gradient that arrives there.
  bool should_execute(torch::autograd::Node* node) const {
    if (runs_everything()) return true;
    const auto found = task.exec_info_.find(node);
    return found != task.exec_info_.end() && found->second.should_execute();
  }
};

}  // namespace backbind
