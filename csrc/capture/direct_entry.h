// A backward that Python asks for, handed over before the engine walks its graph.
//
// The engine counts the dependencies of all nodes before it asks the hook, a tenth to a quarter of a backward of
// small nodes, and a replay needs none of it. So the engine is given one node in place of the graph: it makes all else
// that a backward has (the task, the modes of the thread, the depth), and what it did not note down of the graph is
// noted when something could look at it (Request::note_graph).
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <mutex>

namespace backbind {

// Runs backward() without inputs and without create_graph. Returns false, and has done nothing, where the engine has to
// look at it first: no session is there, the hook is another's, there are devices besides the CPU, anomaly mode is on,
// or a gradient does not fit its root as it is.
//
// Raises what the engine would raise.
bool run_backward_directly(torch::autograd::edge_list&& roots, torch::autograd::variable_list&& gradients,
                           bool keep_graph);

// The backward of such a node, where `graph_root` leads to one; otherwise does nothing and returns false.
bool continue_direct_entry(const torch::autograd::Node& graph_root, torch::autograd::GraphTask& task);

// Whether the engine's hook is ours. To be told before another takes it: waits until no backward is between asking and
// the hook.
void set_engine_hook_is_ours(bool is_ours);

// Held over a fork; in the child, where no other thread is on its way to the hook, this is told first.
std::mutex& direct_entry_mutex();
void forget_direct_entries_of_parent();

}  // namespace backbind
