// Every C++ touch point with something that torch does not promise to keep. tests/nodes/test_torch_private.py names
// what changed when a new torch breaks one of them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <mutex>

namespace backbind::torch_private {

// A tensor on the same storage and with the same metadata as `inference_tensor`, which autograd accepts as a saved
// value: torch refuses to save tensors that were made in inference mode, although reading one is harmless. Uses that
// TensorImpl::key_set_ decides whether a tensor is an inference tensor.
at::Tensor as_ordinary_tensor(const at::Tensor& inference_tensor);

// A node that the backward now running in this thread wants executed, or null if that backward runs every node (or
// none is running). Uses the engine's exec_info: a generated node computes only gradients whose edge leads to a node
// that is wanted there.
c10::intrusive_ptr<torch::autograd::Node> wanted_by_running_backward();

// Whether the engine would evaluate the one root first, without a GraphRoot before it (skip_dummy_node), if no compiled
// autograd were installed. With an accelerator the GraphRoot stays: it knows the streams.
bool skips_graph_root(const torch::autograd::Node& graph_root);

// Takes the root at which the engine would begin without a GraphRoot out of GraphTask::nodes_in_graph_ and
// GraphTask::dependencies_, where it then would not be.
void erase_skipped_graph_root(const torch::autograd::Node& graph_root, torch::autograd::GraphTask& task);

// Frees GraphTask::dependencies_. The engine takes each node out when its turn comes, so that nobody can ask for the
// whole order once the first has run; we need not do so one by one. Uses that nothing but the engine's own loop and
// that question read it.
void release_dependencies(torch::autograd::GraphTask& task);

// Runs a backward that the engine handed over as the engine itself would have run it, from the task that it made for
// it. Uses Engine::execute_with_graph_task, and the list in which the engine collects warnings until the end.
torch::autograd::variable_list run_in_engine(const c10::intrusive_ptr<torch::autograd::Node>& root,
                                             torch::autograd::GraphTask& task);

// A node as the engine's GraphRoot, which leads to the roots of a backward and gives their gradients, but made without
// using up a sequence number.
c10::intrusive_ptr<torch::autograd::Node> make_graph_root(torch::autograd::edge_list&& roots,
                                                          torch::autograd::variable_list&& gradients);

// Fills GraphTask::nodes_in_graph_ and GraphTask::dependencies_ as the engine does before it hands a backward over that
// runs everything: with all nodes that are reached, and how many edges lead to each.
void note_graph(const torch::autograd::Node& graph_root, torch::autograd::GraphTask& task);

// The gradients that a backward begins with, from the node that the engine hands over as its root. Uses that this node
// is a GraphRoot, or made by make_graph_root.
torch::autograd::variable_list root_gradients(const torch::autograd::Node& root);

// The tensor that SavedVariable::unpack would give (undefined if none was saved), where it lies; or null where unpack
// would do more than to give it: call a hook, or raise because it was freed, changed or detached in place. It has the
// values and the metadata alone, not always the history. Uses the fields in which SavedVariable keeps the tensor, its
// version, and whether it was a leaf or a result.
const at::Tensor* saved_tensor(const torch::autograd::SavedVariable& saved);

// Whether a saved value is a result of its own node, rather than an input. Uses the field that notes it down.
bool is_result(const torch::autograd::SavedVariable& saved);

// The kernel that the dispatcher calls for an operator at a key, where it lies: another takes its place when somebody
// registers one. Uses the handle's pointer to the dispatcher's own entry.
const c10::KernelFunction& kernel_in_table(const c10::OperatorHandle& overload, c10::DispatchKey key);

// Whether that kernel is one that torch itself brings. Uses that each registration notes down its source file, and
// where the operator's schema was registered.
bool is_kernel_of_torch(const c10::OperatorHandle& overload, c10::DispatchKey key);

// Whether Python has an object for the tensor, which may come to light again with all that was put on it. Uses the slot
// in which a tensor keeps it.
bool has_python_object(const at::Tensor& tensor);

// Calls an operator through the dispatcher in Python that traces before dispatch (torch.export) and fake tensors use,
// as the kernel does that torch has for all operators at that key. Uses that it hands the key over without its own.
void call_python_dispatcher(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack);

// Holds the mutex with which a node keeps other threads from its saved values. Uses the protected member Node::mutex_.
class NodeLock {
 public:
  explicit NodeLock(torch::autograd::Node& node);

 private:
  std::lock_guard<std::mutex> lock_;
};

// Looks for the place where torch keeps the node that is being evaluated, for CurrentNodeGuard; only the first call
// looks, in a thread of its own, so the caller must not hold the GIL. Returns whether it is known. Uses that it is a
// thread-local variable of the library that has get_current_node.
bool find_current_node();

// Sets the node that get_current_node and torch._C._current_autograd_node give, and restores it; does what
// torch::autograd::NodeGuard does, which torch does not export. Changes nothing where find_current_node found nothing.
class CurrentNodeGuard {
 public:
  explicit CurrentNodeGuard(torch::autograd::Node& node);
  ~CurrentNodeGuard();
  CurrentNodeGuard(const CurrentNodeGuard&) = delete;
  CurrentNodeGuard& operator=(const CurrentNodeGuard&) = delete;

 private:
  decltype(torch::autograd::get_current_node())* current_;
  decltype(torch::autograd::get_current_node()) last_evaluating_node_;
};

// Keeps saved_tensors_hooks from firing while it lives. Uses the flag with which torch itself defers these hooks.
class SavedTensorHooksPaused {
 public:
  SavedTensorHooksPaused();
  ~SavedTensorHooksPaused();
  SavedTensorHooksPaused(const SavedTensorHooksPaused&) = delete;
  SavedTensorHooksPaused& operator=(const SavedTensorHooksPaused&) = delete;

 private:
  bool before_;
};

}  // namespace backbind::torch_private
