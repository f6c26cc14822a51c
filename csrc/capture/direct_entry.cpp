#include "capture/direct_entry.h"

#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "capture/captured_backward.h"
#include "capture/choice.h"
#include "capture/devices.h"
#include "gradients/validate.h"
#include "plan/request.h"
#include "torch_private.h"

namespace backbind {

namespace {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::GraphTask;
using torch::autograd::Node;

// Whose the engine's hook is, and how many backwards are on their way to it.
class Gate {
 public:
  // Whether the hook is ours; then it stays so until the same thread leaves.
  bool enter() {
    const std::lock_guard lock(mutex_);
    if (is_ours_) entering_ += 1;
    return is_ours_;
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    entering_ -= 1;
  }

  void set(bool is_ours) {
    std::unique_lock lock(mutex_);
    is_ours_ = is_ours;
    if (is_ours) return;
    // They are soon there. (A condition variable would not survive a fork.)
    while (entering_ > 0) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }

  std::mutex& mutex() { return mutex_; }
  // In a child of fork, where no other thread is on its way. The mutex is held.
  void forget_others() { entering_ = 0; }

 private:
  std::mutex mutex_;
  bool is_ours_ = false;
  int64_t entering_ = 0;
};

Gate& gate() {
  static Gate one;
  return one;
}

// Keeps the hook ours on the way to it.
class Entry {
 public:
  Entry() : is_open_(gate().enter()) {}
  ~Entry() { close(); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  bool is_open() const { return is_open_; }
  void close() {
    if (std::exchange(is_open_, false)) gate().leave();
  }

 private:
  bool is_open_;
};

// What the engine is given in place of a graph.
struct DirectRoot final : Node {
  DirectRoot(edge_list&& edges, variable_list&& values, Entry& way)
      : Node(/*sequence_nr=*/uint64_t{0}), roots(std::move(edges)), gradients(std::move(values)), entry(way) {
    for (const at::Tensor& gradient : gradients) add_input_metadata(gradient);
  }

  variable_list apply(variable_list&& /*gradients*/) override {
    TORCH_INTERNAL_ASSERT(false, "the engine evaluated a node that only its hook may see");
  }
  std::string name() const override { return "backbind::DirectRoot"; }

  edge_list roots;
  variable_list gradients;
  Entry& entry;
};

}  // namespace

bool run_backward_directly(edge_list&& roots, variable_list&& gradients, bool keep_graph) {
  if (current_session() == nullptr || has_other_devices() || torch::autograd::AnomalyMode::is_enabled()) return false;
  if (!are_valid_grads(roots, gradients)) return false;
  Entry entry;
  if (!entry.is_open()) return false;
  const size_t count = roots.size();
  variable_list given = gradients;
  const auto node = c10::make_intrusive<DirectRoot>(std::move(roots), std::move(gradients), entry);
  edge_list edges;
  for (size_t i = 0; i < count; ++i) edges.emplace_back(node, static_cast<uint32_t>(i));
  Engine::get_default_engine().execute(edges, given, keep_graph, /*create_graph=*/false, /*accumulate_grad=*/true, {});
  return true;
}

bool continue_direct_entry(const Node& graph_root, GraphTask& task) {
  if (graph_root.num_outputs() == 0 || !graph_root.next_edge(0).is_valid()) return false;
  auto* direct = dynamic_cast<DirectRoot*>(graph_root.next_edge(0).function.get());
  if (direct == nullptr) return false;
  direct->entry.close();
  task.nodes_in_graph_.clear();
  task.dependencies_.clear();
  task.graph_roots_.clear();
  for (const auto& edge : direct->roots) task.graph_roots_.push_back(edge.function.get());
  const c10::intrusive_ptr<Node> root =
      torch_private::make_graph_root(std::move(direct->roots), std::move(direct->gradients));
  bool has_noted_graph = false;
  const edge_list no_inputs;
  run_handed_over({root, task, no_inputs, InputGrads::kAccumulated, &has_noted_graph});
  return true;
}

void set_engine_hook_is_ours(bool is_ours) { gate().set(is_ours); }

std::mutex& direct_entry_mutex() { return gate().mutex(); }

void forget_direct_entries_of_parent() { gate().forget_others(); }

}  // namespace backbind
